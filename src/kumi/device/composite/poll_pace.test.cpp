#include "kumi/device/composite/poll_pace.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// A part that is polled, and a clock that tests advance.
struct Paced {
    explicit Paced(bool is_light) : pace(is_light) {}

    bool is_due() {
        return pace.is_due([this] { return clock; });
    }
    /// So many polls that find nothing.
    void stay_quiet(unsigned polls) {
        for (unsigned i = 0; i < polls; ++i) pace.on_poll(true, [this] { return clock; });
    }
    /// How many of so many looks are due, each `apart` after the one before.
    unsigned due_of(unsigned looks, Duration apart) {
        unsigned due = 0;
        for (unsigned i = 0; i < looks; ++i) {
            clock += apart;
            due += is_due() ? 1 : 0;
        }
        return due;
    }

    PollPace pace;
    Instant clock{1h};
};

TEST(PollPace, a_part_that_costs_nothing_is_polled_every_time) {
    Paced light(true);
    light.stay_quiet(10 * PollPace::quiet_polls);
    EXPECT_EQ(light.due_of(100, 1ns), 100u);
}

TEST(PollPace, a_part_is_polled_every_time_until_it_has_been_quiet_long_enough) {
    Paced heavy(false);
    heavy.stay_quiet(PollPace::quiet_polls - 1);
    EXPECT_TRUE(heavy.is_due());
    heavy.stay_quiet(1);
    EXPECT_FALSE(heavy.is_due());
}

TEST(PollPace, a_quiet_part_is_polled_every_ten_microseconds) {
    Paced heavy(false);
    heavy.stay_quiet(PollPace::quiet_polls);
    // The clock is read once in 16 polls, every 1.6 us: the seventh time is the first after 10 us.
    EXPECT_EQ(heavy.due_of(7 * PollPace::polls_per_look * 50, 100ns), 50u);
}

TEST(PollPace, what_is_sent_or_comes_makes_a_quiet_part_due_again) {
    Paced heavy(false);
    heavy.stay_quiet(PollPace::quiet_polls);
    EXPECT_FALSE(heavy.is_due());
    heavy.pace.expect_arrivals();
    EXPECT_EQ(heavy.due_of(10, 1ns), 10u);
    heavy.stay_quiet(PollPace::quiet_polls);
    EXPECT_FALSE(heavy.is_due());
    heavy.pace.on_poll(false, [&] { return heavy.clock; });
    EXPECT_TRUE(heavy.is_due());
}

TEST(PollPace, a_caller_that_does_other_things_between_polls_has_all_parts_polled) {
    Paced heavy(false);
    heavy.stay_quiet(PollPace::quiet_polls);
    heavy.due_of(PollPace::polls_per_look, 2us);
    EXPECT_EQ(heavy.due_of(10, 2us), 10u);
}

} // namespace
} // namespace kumi::device::composite
