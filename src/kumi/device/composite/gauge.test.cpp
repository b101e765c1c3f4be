#include "kumi/device/composite/gauge.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// A network that carries so much, and answers after a while.
struct Wire {
    double bytes_per_second;
    Duration round_trip = 50us;

    Duration time_for(std::size_t bytes) const {
        return round_trip + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(static_cast<double>(bytes) / bytes_per_second));
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
        for (int burst = 0; !gauge.is_done(); ++burst) gauge.on_burst(Wire{125e6}.time_for(gauge.bytes()) + (burst == slow ? 20ms : 0ms));
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

} // namespace
} // namespace kumi::device::composite
