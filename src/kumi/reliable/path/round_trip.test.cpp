#include "kumi/reliable/path/round_trip.hpp"

#include <gtest/gtest.h>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

TEST(RoundTrip, before_the_first_sample_it_is_guessed) {
    const RoundTrip round_trip;
    EXPECT_FALSE(round_trip.known());
    EXPECT_EQ(round_trip.timeout(0), 20ms);
}

TEST(RoundTrip, the_estimate_follows_the_samples) {
    RoundTrip round_trip;
    for (int i = 0; i < 100; ++i) round_trip.on_sample(10ms);
    EXPECT_EQ(round_trip.smooth(), 10ms);
    EXPECT_LT(round_trip.timeout(0), 11ms);
    for (int i = 0; i < 100; ++i) round_trip.on_sample(20ms);
    EXPECT_NEAR(static_cast<double>(round_trip.smooth().count()), 20e6, 1e5);
    EXPECT_LT(round_trip.least(), 11ms);
}

TEST(RoundTrip, samples_that_vary_make_the_timeout_longer) {
    RoundTrip round_trip;
    for (int i = 0; i < 100; ++i) round_trip.on_sample(i % 2 == 0 ? 5ms : 15ms);
    EXPECT_GT(round_trip.timeout(0), 20ms);
}

TEST(RoundTrip, the_timeout_doubles_from_5_ms_to_250) {
    RoundTrip round_trip;
    round_trip.on_sample(10us);
    EXPECT_EQ(round_trip.timeout(0), 5ms);
    EXPECT_EQ(round_trip.timeout(1), 10ms);
    EXPECT_EQ(round_trip.timeout(4), 80ms);
    EXPECT_EQ(round_trip.timeout(5), 160ms);
    EXPECT_EQ(round_trip.timeout(6), 250ms);
    EXPECT_EQ(round_trip.timeout(1000), 250ms);
}

TEST(RoundTrip, where_answers_take_long_the_timeout_doubles_twice_and_to_a_second_at_most) {
    RoundTrip slow, slower;
    slow.on_sample(40ms); // 40 + 4 * 20
    const Duration expected[] = {120ms, 240ms, 480ms, 480ms};
    for (unsigned tries = 0; tries < 4; ++tries) EXPECT_EQ(slow.timeout(tries), expected[tries]) << tries;
    slower.on_sample(200ms); // 200 + 4 * 100
    EXPECT_EQ(slower.timeout(0), 600ms);
    EXPECT_EQ(slower.timeout(1), 1s);
    EXPECT_EQ(slower.timeout(10), 1s);
}

TEST(RoundTrip, a_sample_of_an_hour_is_not_believed) {
    RoundTrip round_trip;
    for (int i = 0; i < 10; ++i) round_trip.on_sample(1h);
    EXPECT_LE(round_trip.smooth(), 1s);
    EXPECT_LE(round_trip.timeout(0), 1s);
}

TEST(RoundTrip, the_estimate_is_that_of_rfc_6298) {
    RoundTrip round_trip;
    round_trip.on_sample(10ms);
    EXPECT_EQ(round_trip.smooth(), 10ms);
    EXPECT_EQ(round_trip.timeout(0), 10ms + 4 * 5ms);
    round_trip.on_sample(20ms);
    EXPECT_EQ(round_trip.smooth(), 11250us);
    EXPECT_EQ(round_trip.timeout(0), 11250us + 4 * 6250us);
    round_trip.on_sample(1250us); // shorter, by 10 ms
    EXPECT_EQ(round_trip.smooth(), 10ms);
    EXPECT_EQ(round_trip.timeout(0), 10ms + 4 * 7187500ns);
}

TEST(RoundTrip, a_guessed_timeout_doubles_to_250_ms_too) {
    const RoundTrip round_trip;
    const Duration expected[] = {20ms, 40ms, 80ms, 160ms, 250ms, 250ms, 250ms, 250ms};
    for (unsigned tries = 0; tries < 8; ++tries) EXPECT_EQ(round_trip.timeout(tries), expected[tries]) << tries;
    for (const unsigned tries : {10u, 11u, 31u, 32u, 63u, 64u}) EXPECT_EQ(round_trip.timeout(tries), 250ms) << tries;
}

TEST(RoundTrip, the_least_is_the_shortest_and_fades_slowly) {
    RoundTrip round_trip;
    round_trip.on_sample(4096us);
    round_trip.on_sample(8ms);
    EXPECT_EQ(round_trip.least(), 4097us);
    round_trip.on_sample(2ms);
    EXPECT_EQ(round_trip.least(), 2ms);
}

TEST(RoundTrip, a_second_is_the_longest_and_a_nanosecond_the_shortest_sample) {
    RoundTrip longest, shortest;
    longest.on_sample(1s + 1ns);
    EXPECT_EQ(longest.smooth(), 1s);
    shortest.on_sample(0ns);
    EXPECT_TRUE(shortest.known());
    EXPECT_EQ(shortest.smooth(), 1ns);
}

} // namespace
} // namespace kumi::reliable
