#pragma once

// How often a part of a composite is polled. An empty look at shared memory costs nanoseconds, an empty look at a
// socket costs a system call, and a node that waits for memory would wait for the socket too. So a part whose polls
// cost a system call is polled every time while messages come or an answer is due, and only every 10 us after it has
// been quiet for 128 polls. Pure: the caller passes the clock, which is read rarely.

#include "kumi/base/clock.hpp"

#include <utility>

namespace kumi::device::composite {

class PollPace {
public:
    static constexpr unsigned quiet_polls = 128;
    static constexpr Duration quiet_time = std::chrono::microseconds(10);
    /// The clock is read once in so many polls. If these took longer than `slow_polls_time`, the caller does other
    /// things between polls, and the cost of a poll does not matter.
    static constexpr unsigned polls_per_look = 16;
    static constexpr Duration slow_polls_time = std::chrono::microseconds(20);

    /// `is_light`: a poll costs no system call, so the part is polled every time.
    explicit PollPace(bool is_light = true) noexcept : is_light_(is_light) {}

    /// True if the part is to be polled now.
    template <class Clock>
    bool is_due(Clock&& read_clock) noexcept {
        if (is_light_ || quiet_ < quiet_polls) return true;
        if (++passed_over_ < polls_per_look) return false;
        passed_over_ = 0;
        const Instant time = read_clock();
        const bool are_slow = time - std::exchange(looked_, time) > slow_polls_time;
        if (are_slow) quiet_ = 0;
        else if (time - polled_ < quiet_time) return false;
        polled_ = time;
        return true;
    }

    /// The part was polled; `is_quiet`: it brought nothing.
    template <class Clock>
    void on_poll(bool is_quiet, Clock&& read_clock) noexcept {
        if (is_light_) return;
        quiet_ = is_quiet ? quiet_ + 1 : 0;
        if (quiet_ == quiet_polls) looked_ = polled_ = read_clock();
    }

    /// Something was sent by the part, so an answer may come; or the node woke up, and what woke it is to be found.
    void expect_arrivals() noexcept { quiet_ = 0; }

private:
    bool is_light_;
    unsigned quiet_ = 0;       // polls since something came or went
    unsigned passed_over_ = 0; // polls of other parts since the clock was last read
    Instant looked_{};         // when that was
    Instant polled_{};
};

} // namespace kumi::device::composite
