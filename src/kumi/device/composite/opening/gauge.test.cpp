#include "kumi/device/composite/opening/gauge.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// A network that carries so much, and answers after a while.
struct Wire {
    double bytes_per_second;
    Duration round_trip = 50us;

    Duration time_for(std::size_t bytes) const {
        return round_trip + std::chrono::duration_cast<Duration>(
                                std::chrono::duration<double>(static_cast<double>(bytes) / bytes_per_second));
    }
};

Duration measure(Gauge& gauge, const Wire& wire) {
    Duration spent{0};
    for (int bursts = 0; !gauge.is_done() && bursts < 100; ++bursts) {
        const Duration took = wire.time_for(gauge.bytes());
        spent += took;
        gauge.on_burst(took);
    }
    return spent;
}

TEST(Gauge, comes_close_to_what_a_network_carries) {
    for (const double rate : {1.25e6, 12.5e6, 125e6, 1.25e9}) {
        Gauge gauge;
        const Duration spent = measure(gauge, {rate});
        EXPECT_TRUE(gauge.is_done());
        EXPECT_NEAR(gauge.bytes_per_second() / rate, 1, 0.1) << rate;
        EXPECT_LT(spent, 50ms) << rate;
    }
}

TEST(Gauge, one_slow_burst_of_three_does_not_count) {
    for (int slow = 0; slow < 12; ++slow) {
        Gauge gauge;
        for (int burst = 0; !gauge.is_done(); ++burst)
            gauge.on_burst(Wire{125e6}.time_for(gauge.bytes()) + (burst == slow ? 20ms : 0ms));
        EXPECT_NEAR(gauge.bytes_per_second() / 125e6, 1, 0.1) << "burst " << slow;
    }
}

TEST(Gauge, a_very_slow_network_is_not_asked_often) {
    Gauge gauge;
    gauge.on_burst(1s);
    EXPECT_FALSE(gauge.is_done());
    gauge.on_burst(1s);
    EXPECT_TRUE(gauge.is_done());
}

TEST(Gauge, a_clock_that_does_not_move_is_no_trouble) {
    Gauge gauge;
    while (!gauge.is_done()) gauge.on_burst(0s);
    EXPECT_GT(gauge.bytes_per_second(), 1e12);
}

TEST(BestFirst, more_is_better_and_about_the_same_keeps_its_place) {
    using Order = std::vector<std::size_t>;
    EXPECT_EQ(best_first({}), Order{});
    EXPECT_EQ(best_first({1, 100, 10}), (Order{1, 2, 0}));
    EXPECT_EQ(best_first({90, 100, 95}), (Order{0, 1, 2}));
    EXPECT_EQ(best_first({10, 70, 100}), (Order{2, 1, 0}));
    EXPECT_EQ(best_first({0, 0, 5}), (Order{2, 0, 1})) << "what was not measured comes last";
}

TEST(Gauge, bursts_double_until_one_takes_3_ms_or_is_a_mebibyte) {
    Gauge gauge;
    EXPECT_EQ(gauge.bytes(), 16u << 10);
    gauge.on_burst(3ms - 1ns);
    EXPECT_EQ(gauge.bytes(), 32u << 10);
    gauge.on_burst(3ms);
    EXPECT_EQ(gauge.bytes(), 32u << 10) << "long enough";
    EXPECT_FALSE(gauge.is_done());
    Gauge fast;
    for (int bursts = 0; fast.bytes() < 1u << 20; ++bursts) {
        ASSERT_LT(bursts, 6);
        fast.on_burst(1us);
    }
    for (int tries = 0; tries < 3; ++tries) {
        EXPECT_FALSE(fast.is_done()) << tries;
        fast.on_burst(1us);
        EXPECT_EQ(fast.bytes(), 1u << 20) << "none is longer";
    }
    EXPECT_TRUE(fast.is_done());
    EXPECT_NEAR(fast.bytes_per_second(), (1 << 20) / 1e-6, 1e6);
}

TEST(Gauge, two_bursts_are_enough_when_they_took_30_ms) {
    Gauge slow, slower;
    slow.on_burst(15ms);
    slow.on_burst(15ms - 1ns);
    EXPECT_FALSE(slow.is_done());
    slower.on_burst(15ms);
    slower.on_burst(15ms);
    EXPECT_TRUE(slower.is_done());
}

TEST(BestFirst, a_fifth_less_than_the_fastest_is_about_the_same_and_more_is_not) {
    using Order = std::vector<std::size_t>;
    EXPECT_EQ(best_first({80, 100}), (Order{0, 1}));
    EXPECT_EQ(best_first({79.9, 100}), (Order{1, 0}));
    EXPECT_EQ(best_first({50, 60, 100}), (Order{2, 0, 1})) << "those that are left are compared with each other";
}

} // namespace
} // namespace kumi::device::composite
