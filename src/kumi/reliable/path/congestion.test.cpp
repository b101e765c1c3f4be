#include "kumi/reliable/path/congestion.hpp"

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

// ---- every bound

/// One round after the other, on a path whose shortest round trip is a millisecond.
struct Rounds {
    Congestion congestion;
    RoundTrip round_trip = round_trip_of(1ms);
    Sequence transmission = 1;

    std::uint32_t window() const { return congestion.window_bytes(); }
    void lose(int packets, std::uint32_t packet_bytes) {
        for (int i = 0; i < packets; ++i) congestion.on_lost(packet_bytes);
    }
    /// True: the window was made smaller.
    bool end(std::uint32_t bytes_arrived) {
        const Sequence latest = transmission++;
        return congestion.on_arrived(bytes_arrived, latest, transmission, round_trip);
    }
    bool end(std::uint32_t bytes_arrived, Duration round_trip_time) {
        congestion.on_sample(round_trip_time);
        return end(bytes_arrived);
    }
    bool is_paced() {
        congestion.on_sent(1 << 20, start, round_trip);
        return congestion.paced_until() > start;
    }
};

TEST(Congestion, a_window_that_was_used_by_half_doubles_until_something_goes_wrong_and_then_grows_by_an_eighth) {
    Rounds rounds;
    EXPECT_FALSE(rounds.end(128 * 1024 - 1));
    EXPECT_EQ(rounds.window(), 256u * 1024) << "not used";
    EXPECT_FALSE(rounds.end(128 * 1024));
    EXPECT_EQ(rounds.window(), 512u * 1024);
    rounds.lose(20, 1000);
    EXPECT_TRUE(rounds.end(80'000));
    const std::uint32_t smaller = 512u * 1024 / 10 * 7;
    EXPECT_EQ(rounds.window(), smaller);
    EXPECT_FALSE(rounds.end(smaller / 2));
    EXPECT_EQ(rounds.window(), smaller + smaller / 8);
}

TEST(Congestion, more_than_a_tenth_lost_is_congestion_and_a_tenth_is_not) {
    Rounds rounds;
    rounds.lose(10, 1000);
    EXPECT_FALSE(rounds.end(90'000));
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_start);
    EXPECT_FALSE(rounds.is_paced());
    rounds.lose(11, 1000);
    EXPECT_TRUE(rounds.end(89'000));
    EXPECT_TRUE(rounds.is_paced());
    const std::uint32_t smaller = rounds.window();
    EXPECT_FALSE(rounds.end(100'000)) << "what was judged once is not judged again";
    EXPECT_EQ(rounds.window(), smaller + smaller / 8);
}

TEST(Congestion, one_packet_that_is_lost_behind_a_long_queue_is_congestion) {
    Rounds rounds;
    rounds.lose(1, 1000);
    EXPECT_FALSE(rounds.end(120'000, 4500us)) << "4 times the shortest, and 500 us";
    EXPECT_FALSE(rounds.end(120'000, 4501us)) << "nothing was lost in this round";
    EXPECT_FALSE(rounds.is_paced());
    rounds.lose(1, 1000);
    EXPECT_TRUE(rounds.end(120'000, 4501us));
    EXPECT_EQ(rounds.window(), 256u * 1024 / 10 * 7);
    EXPECT_TRUE(rounds.is_paced());
}

TEST(Congestion, a_loss_without_a_sample_means_nothing) {
    Rounds rounds;
    rounds.lose(1, 1000);
    EXPECT_FALSE(rounds.end(120'000));
    EXPECT_FALSE(rounds.is_paced());
}

TEST(Congestion, a_window_that_has_shrunk_grows_although_packets_wait) {
    Rounds rounds;
    rounds.lose(20, 1000);
    EXPECT_TRUE(rounds.end(80'000));
    const std::uint32_t smaller = rounds.window();
    EXPECT_FALSE(rounds.end(rounds.window(), 10ms)); // others fill the queue
    EXPECT_EQ(rounds.window(), smaller + smaller / 8);
    for (int round = 0; round < 2; ++round) EXPECT_FALSE(rounds.end(rounds.window(), 10ms));
    EXPECT_GT(rounds.window(), 256u * 1024 * 9 / 10);
    EXPECT_FALSE(rounds.end(rounds.window(), 10ms));
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_start);
    EXPECT_FALSE(rounds.end(rounds.window(), 10ms));
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_start) << "a larger one would only make them wait longer";
}

TEST(Congestion, pauses_follow_a_queue_that_has_emptied) {
    Congestion congestion;
    RoundTrip round_trip = round_trip_of(40ms);
    congestion.on_silence();
    congestion.on_sent(64 * 1024, start, round_trip);
    const Duration slow = congestion.paced_until() - start;
    round_trip.on_sample(1ms);
    EXPECT_GT(round_trip.smooth(), 30ms);
    EXPECT_EQ(round_trip.recent(), 1ms);
    const Instant later = start + 1s;
    congestion.on_sent(64 * 1024, later, round_trip);
    EXPECT_LT(congestion.paced_until() - later, slow / 10);
    round_trip.on_sample(500ms); // one answer that comes late
    EXPECT_EQ(round_trip.recent(), round_trip.smooth());
}

TEST(Congestion, losses_among_fewer_than_64_packets_are_not_judged_yet) {
    Rounds rounds;
    for (int round = 1; round <= 15; ++round) { // of four packets, of which one is lost
        rounds.lose(1, 4096);
        EXPECT_FALSE(rounds.end(3 * 4096)) << round;
    }
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_start);
    rounds.lose(1, 4096);
    EXPECT_TRUE(rounds.end(3 * 4096));
}

TEST(Congestion, a_round_ends_when_what_left_after_its_beginning_has_arrived) {
    const RoundTrip round_trip = round_trip_of(1ms);
    Congestion congestion;
    congestion.on_arrived(1 << 20, 1, 10, round_trip);
    EXPECT_EQ(congestion.window_bytes(), 512u * 1024);
    congestion.on_arrived(1 << 20, 9, 20, round_trip);
    EXPECT_EQ(congestion.window_bytes(), 512u * 1024) << "9 left in the round before";
    congestion.on_arrived(1, 10, 20, round_trip);
    EXPECT_EQ(congestion.window_bytes(), 1024u * 1024);
}

TEST(Congestion, a_round_of_less_than_the_smallest_window_tells_nothing_and_goes_on) {
    Rounds rounds;
    for (int i = 0; i < 10; ++i) rounds.congestion.on_silence();
    ASSERT_EQ(rounds.window(), Congestion::window_bytes_min);
    rounds.end(Congestion::window_bytes_min - 1);
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_min);
    rounds.end(1);
    EXPECT_EQ(rounds.window(), 2 * Congestion::window_bytes_min) << "after silence it opens quickly";
}

TEST(Congestion, a_round_trip_above_8_times_the_least_and_20_ms_means_a_queue) {
    Rounds rounds;
    EXPECT_FALSE(rounds.end(256 * 1024, 28ms));
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_start);
    EXPECT_FALSE(rounds.is_paced());
    EXPECT_TRUE(rounds.end(256 * 1024, 28ms + 1ns));
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_start / 8 * 7);
    EXPECT_TRUE(rounds.is_paced());
    for (int i = 0; i < 100; ++i) rounds.end(256 * 1024, 1s);
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_min);
}

TEST(Congestion, a_round_trip_above_twice_the_least_and_50_us_lets_the_window_grow_no_more) {
    Rounds rounds;
    EXPECT_FALSE(rounds.end(256 * 1024, 2050us));
    EXPECT_EQ(rounds.window(), 512u * 1024);
    EXPECT_TRUE(rounds.end(512 * 1024, 2050us + 1ns));
    EXPECT_EQ(rounds.window(), 512u * 1024 / 8 * 7);
    for (int i = 0; i < 20; ++i) rounds.end(512 * 1024, 2050us + 1ns);
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_start) << "and no smaller";
    EXPECT_FALSE(rounds.is_paced());
    rounds.congestion.on_silence();
    rounds.end(512 * 1024, 2050us + 1ns);
    EXPECT_EQ(rounds.window(), Congestion::window_bytes_start) << "a smaller one grows to that";
}

TEST(Congestion, the_shortest_of_a_round_counts_and_only_that_round) {
    Rounds rounds;
    rounds.congestion.on_sample(1ms);
    EXPECT_FALSE(rounds.end(256 * 1024, 50ms));
    EXPECT_EQ(rounds.window(), 512u * 1024);
    EXPECT_TRUE(rounds.end(512 * 1024, 50ms));
}

TEST(Congestion, pacing_ends_when_the_window_is_back_where_it_started) {
    Rounds rounds;
    rounds.congestion.on_silence();
    rounds.congestion.on_silence();
    EXPECT_EQ(rounds.window(), 64u * 1024);
    rounds.end(64 * 1024);
    EXPECT_EQ(rounds.window(), 128u * 1024);
    EXPECT_TRUE(rounds.is_paced());
    const Instant until = rounds.congestion.paced_until();
    rounds.end(128 * 1024);
    EXPECT_EQ(rounds.window(), 256u * 1024);
    rounds.is_paced();
    EXPECT_EQ(rounds.congestion.paced_until(), until);
}

TEST(Congestion, a_window_is_spread_over_four_fifths_of_a_round_trip_and_32_kib_leave_at_once) {
    Rounds rounds;
    rounds.congestion.on_silence(); // 128 KiB
    rounds.congestion.on_sent(32 * 1024, start, rounds.round_trip);
    EXPECT_LE(rounds.congestion.paced_until(), start);
    rounds.congestion.on_sent(128 * 1024, start + 1s, rounds.round_trip);
    EXPECT_EQ(rounds.congestion.paced_until(), start + 1s + 800us - 250us);
    rounds.congestion.on_sent(32 * 1024, start + 1s + 550us, rounds.round_trip);
    EXPECT_EQ(rounds.congestion.paced_until(), start + 1s + 750us);
    rounds.congestion.on_sent(1 << 20, start + 2s, round_trip_of(1s));
    EXPECT_EQ(rounds.congestion.paced_until(), start + 2s + 20ms) << "and never for long";
}

} // namespace
} // namespace kumi::reliable
