#include "kumi/reliable/round_trip.hpp"

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

TEST(RoundTrip, the_timeout_doubles_from_5_ms_to_a_second) {
    RoundTrip round_trip;
    round_trip.on_sample(10us);
    EXPECT_EQ(round_trip.timeout(0), 5ms);
    EXPECT_EQ(round_trip.timeout(1), 10ms);
    EXPECT_EQ(round_trip.timeout(4), 80ms);
    EXPECT_EQ(round_trip.timeout(1000), 1s);
}

TEST(RoundTrip, a_sample_of_an_hour_is_not_believed) {
    RoundTrip round_trip;
    for (int i = 0; i < 10; ++i) round_trip.on_sample(1h);
    EXPECT_LE(round_trip.smooth(), 1s);
    EXPECT_LE(round_trip.timeout(0), 1s);
}

} // namespace
} // namespace kumi::reliable
