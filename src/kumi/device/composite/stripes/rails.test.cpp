#include "kumi/device/composite/stripes/rails.hpp"

#include <bit>
#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// Somebody sends large messages as fast as rails take them, or slower.
struct Stream {
    static constexpr double message_bytes = 200e3, queue_bytes = 500e3;

    explicit Stream(std::vector<double> bytes_per_second)
        : rates(std::move(bytes_per_second)), queues(rates.size()), rails(rates.size()) {}

    std::vector<double> rates, queues;
    std::uint64_t usable = 0b11;
    double all_together = 1e12; // what the machine can do at all
    double wanted = 1e12;       // bytes per second
    Rails rails;
    Instant clock{1h};
    std::size_t pieces_left = 0; // of the last message
    double carried = 0;
    unsigned trials = 0;

    bool give(std::size_t rail, double bytes) {
        if (queues[rail] + bytes > queue_bytes) return false;
        queues[rail] += bytes;
        return true;
    }
    bool give_piece() {
        std::uint64_t left = usable;
        while (left != 0) {
            auto next = static_cast<std::size_t>(std::countr_zero(left));
            for (std::size_t i = 0; i < rates.size(); ++i)
                if ((left >> i & 1) != 0 && rails.turn(i) < rails.turn(next)) next = i;
            left &= ~(std::uint64_t{1} << next);
            if (!give(next, message_bytes / 4)) continue;
            rails.on_given(next, static_cast<std::size_t>(message_bytes / 4));
            return true;
        }
        return false;
    }
    bool send() {
        while (pieces_left != 0 && give_piece()) --pieces_left;
        if (pieces_left != 0) return false;
        if (!rails.are_striped()) return give(0, message_bytes);
        if (!give_piece()) return false;
        for (pieces_left = 3; pieces_left != 0 && give_piece();) --pieces_left;
        return true;
    }
    void step() { // of a millisecond
        clock += 1ms;
        double possible = all_together / 1000;
        for (std::size_t i = 0; i < rates.size(); ++i) {
            const double bytes = std::min({queues[i], rates[i] / 1000, possible});
            queues[i] -= bytes, possible -= bytes, carried += bytes;
        }
        credit += wanted / 1000;
        for (; credit >= message_bytes; credit -= message_bytes) {
            if (!send()) {
                rails.on_refused();
                credit = std::min(credit, message_bytes);
                break;
            }
            rails.on_taken(static_cast<std::size_t>(message_bytes));
        }
        if (clock.time_since_epoch() % 10ms == 0ms && rails.on_time(clock, usable, pieces_left == 0 && queues[1] == 0))
            ++trials;
    }
    /// Answers the rate.
    double run(Duration time) {
        carried = 0;
        for (const Instant end = clock + time; clock < end;) step();
        return carried / std::chrono::duration<double>(time).count();
    }

private:
    double credit = 0; // bytes that are wanted by now
};

TEST(Rails, two_networks_that_carry_as_much_each_are_used_together) {
    Stream stream({100e6, 100e6});
    stream.run(2s);
    EXPECT_TRUE(stream.rails.are_striped());
    EXPECT_NEAR(stream.rails.rates().striped / stream.rails.rates().single, 2, 0.2);
    EXPECT_GT(stream.run(20s), 185e6) << "trials do not cost much";
    EXPECT_GT(stream.trials, 2u);
    EXPECT_LT(stream.trials, 8u);
}

TEST(Rails, a_network_that_carries_half_as_much_has_half_the_share) {
    Stream stream({100e6, 50e6});
    stream.run(2s);
    EXPECT_TRUE(stream.rails.are_striped());
    EXPECT_NEAR(stream.rails.share(1) / stream.rails.share(0), 0.5, 0.1);
    EXPECT_GT(stream.run(4s), 135e6);
}

TEST(Rails, networks_that_carry_no_more_together_are_not) {
    Stream stream({100e6, 100e6});
    stream.all_together = 105e6;
    stream.run(2s);
    EXPECT_FALSE(stream.rails.are_striped());
    stream.run(200s);
    EXPECT_FALSE(stream.rails.are_striped());
    EXPECT_GT(stream.trials, 2u) << "it is tried again";
    EXPECT_LT(stream.trials, 9u) << "but rarely";
}

TEST(Rails, a_slow_network_beside_a_fast_one_is_left_alone) {
    Stream stream({100e6, 5e6});
    stream.run(10s);
    EXPECT_FALSE(stream.rails.are_striped());
}

TEST(Rails, without_pressure_nothing_is_tried) {
    Stream stream({100e6, 100e6});
    stream.wanted = 80e6;
    stream.run(30s);
    EXPECT_EQ(stream.trials, 0u);
    EXPECT_FALSE(stream.rails.are_striped());
}

TEST(Rails, shares_follow_a_network_that_slows_down) {
    Stream stream({100e6, 100e6});
    stream.run(2s);
    EXPECT_NEAR(stream.rails.share(1), 0.5, 0.1);
    stream.rates[1] = 30e6;
    stream.run(500ms);
    EXPECT_NEAR(stream.rails.share(1) / stream.rails.share(0), 0.3, 0.1);
    EXPECT_GT(stream.run(500ms), 120e6);
}

TEST(Rails, where_it_does_not_pay_any_more_it_ends) {
    Stream stream({100e6, 100e6});
    stream.run(2s);
    ASSERT_TRUE(stream.rails.are_striped());
    stream.all_together = 100e6;
    stream.run(20s);
    EXPECT_FALSE(stream.rails.are_striped());
}

TEST(Rails, with_one_left_messages_stay_whole_and_with_two_again_it_is_tried_again) {
    Stream stream({100e6, 100e6});
    stream.run(2s);
    ASSERT_TRUE(stream.rails.are_striped());
    stream.usable = 0b01;
    stream.run(20ms);
    EXPECT_FALSE(stream.rails.are_striped());
    stream.run(10s);
    EXPECT_FALSE(stream.rails.are_striped());
    stream.usable = 0b11;
    stream.run(2s);
    EXPECT_TRUE(stream.rails.are_striped());
}

TEST(Rails, a_pause_during_a_trial_ends_it) {
    Stream stream({100e6, 100e6});
    stream.run(250ms);
    stream.wanted = 0;
    stream.run(1s);
    EXPECT_EQ(stream.trials, 0u);
    EXPECT_FALSE(stream.rails.are_striped());
    stream.wanted = 1e12;
    stream.run(2s);
    EXPECT_TRUE(stream.rails.are_striped());
}

TEST(Rails, what_brings_a_tenth_is_not_worth_it_and_what_brings_a_quarter_is) {
    for (const auto& [together, is_striped] : {std::pair{110e6, false}, {125e6, true}}) {
        Stream stream({100e6, 100e6});
        stream.all_together = together;
        stream.run(2s);
        EXPECT_EQ(stream.trials, 1u);
        EXPECT_EQ(stream.rails.are_striped(), is_striped) << together;
    }
}

TEST(Rails, where_they_are_always_striped_two_are_needed_all_the_same) {
    Rails one(1, true), two(2, true);
    EXPECT_FALSE(one.are_striped());
    EXPECT_TRUE(two.are_striped());
    two.on_time(Instant{1h}, 0b01, true);
    EXPECT_FALSE(two.are_striped());
    two.on_time(Instant{1h} + 10ms, 0b11, true);
    EXPECT_TRUE(two.are_striped());
}

TEST(Rails, a_trial_begins_after_100_ms_of_pressure_and_measures_one_rail_first) {
    Rails rails(2);
    Instant clock{1h};
    const auto pressed_for = [&](Duration time) {
        for (const Instant end = clock + time; clock < end;) {
            clock += 10ms;
            rails.on_taken(1'000'000);
            rails.on_refused();
            rails.on_time(clock, 0b11, true);
        }
    };
    pressed_for(110ms); // the first of them only begins it
    EXPECT_FALSE(rails.are_striped());
    pressed_for(70ms); // it settles; then eight messages are measured
    EXPECT_FALSE(rails.are_striped());
    pressed_for(60ms);
    EXPECT_TRUE(rails.are_striped()) << "now all of them";
}

} // namespace
} // namespace kumi::device::composite
