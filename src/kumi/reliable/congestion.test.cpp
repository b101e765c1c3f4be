#include "kumi/reliable/congestion.hpp"

#include <gtest/gtest.h>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

constexpr Instant start = Instant{} + 1h;

RoundTrip round_trip_of(Duration time) {
    RoundTrip round_trip;
    round_trip.on_sample(time);
    return round_trip;
}

/// Rounds of 100 packets each, of which `lost` are lost.
void run_rounds(Congestion& congestion, int rounds, std::uint32_t lost, Duration time = 100us) {
    const RoundTrip round_trip = round_trip_of(100us);
    static Sequence transmission = 1;
    for (int round = 0; round < rounds; ++round) {
        const std::uint32_t packet = congestion.window_bytes() / 100;
        for (std::uint32_t i = 0; i < lost; ++i) congestion.on_lost(packet);
        congestion.on_sample(time);
        congestion.on_arrived((100 - lost) * packet, transmission, transmission + 1, round_trip);
        ++transmission;
    }
}

TEST(Congestion, a_window_that_is_used_opens_to_the_largest) {
    Congestion congestion;
    EXPECT_EQ(congestion.window_bytes(), Congestion::window_bytes_start);
    run_rounds(congestion, 10, 0);
    EXPECT_EQ(congestion.window_bytes(), Congestion::window_bytes_max);
}

TEST(Congestion, a_few_losses_mean_nothing_and_many_mean_congestion) {
    Congestion congestion;
    run_rounds(congestion, 10, 5);
    EXPECT_EQ(congestion.window_bytes(), Congestion::window_bytes_max);
    run_rounds(congestion, 1, 20);
    EXPECT_LT(congestion.window_bytes(), Congestion::window_bytes_max);
    run_rounds(congestion, 30, 20);
    EXPECT_EQ(congestion.window_bytes(), Congestion::window_bytes_min);
    run_rounds(congestion, 100, 0);
    EXPECT_EQ(congestion.window_bytes(), Congestion::window_bytes_max);
}

TEST(Congestion, a_queue_that_stands_makes_the_window_smaller) {
    Congestion congestion;
    run_rounds(congestion, 1, 0, 50ms);
    EXPECT_LT(congestion.window_bytes(), Congestion::window_bytes_start);
}

TEST(Congestion, packets_are_paced_only_when_it_is_congested) {
    Congestion congestion;
    congestion.on_sent(1 << 20, start, round_trip_of(1ms));
    EXPECT_LE(congestion.paced_until(), start);
    congestion.on_silence();
    congestion.on_sent(1 << 20, start, round_trip_of(1ms));
    EXPECT_GT(congestion.paced_until(), start);
}

TEST(Congestion, a_round_trip_of_hours_does_not_stop_a_sender) {
    Congestion congestion;
    congestion.on_silence();
    congestion.on_sent(1 << 20, start, round_trip_of(10h));
    EXPECT_LE(congestion.paced_until(), start + 20ms);
}

} // namespace
} // namespace kumi::reliable
