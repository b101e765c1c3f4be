#pragma once

// Whether it pays to send large messages to a node over several networks at once. That cannot be told in advance: two
// cables carry twice as much as one, two networks on one cable do not, and a processor that is busy with one network
// has nothing left for another. So it is tried. While large messages are sent faster than they leave (some are
// refused), the rate with one network and with all of them is taken in turns, three times each for some 50 ms; the
// median with all of them must be better by 15 %. It is tried again every now and then, the more rarely the more often
// it did not pay; and sooner when all networks together carry less than one did. Stripes that are in use stay while
// they bring 5 %.
//
// A period lasts from one refusal to another: there is no room at both, so what was taken in between has left. With
// several networks a refusal means that all are full.
//
// Shares. Each piece goes to the network that has had least, for its share; if that has no room, to the next. So when
// all are full each takes what it can carry, and that is how shares are learnt: they matter when networks are not full.
//
// Pure: no clock, no channel. The caller says what was taken and refused, and the time.

#include "kumi/base/clock.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::device::composite {

class Rails {
public:
    static constexpr Duration settle_time = std::chrono::milliseconds(30); // after a change
    static constexpr Duration period_time = std::chrono::milliseconds(50);
    static constexpr unsigned period_messages = 8; // at least
    static constexpr Duration pressed_time = std::chrono::milliseconds(100); // before it is tried
    static constexpr Duration pause_max = std::chrono::milliseconds(50);     // without a refusal: no sender waits
    static constexpr Duration try_again_after = std::chrono::seconds(5);
    static constexpr Duration try_again_after_max = std::chrono::seconds(60);
    static constexpr Duration try_again_soonest = std::chrono::seconds(2);
    static constexpr int try_again_factor = 20; // or after so many times what a trial took

    /// `always`: striped whenever two or more may be used.
    explicit Rails(std::size_t count = 0, bool always = false);

    /// Large messages are to be sent in pieces.
    bool are_striped() const noexcept { return is_striped_; }

    // ---- large messages

    void on_taken(std::size_t bytes) noexcept { bytes_ += bytes, ++messages_; }
    void on_refused() noexcept { is_pressed_ = true; }
    /// A piece was given to a rail.
    void on_given(std::size_t rail, std::size_t bytes) noexcept { given_[rail] += static_cast<double>(bytes); }
    /// The rail with the least is next.
    double turn(std::size_t rail) const noexcept { return given_[rail] / shares_[rail]; }
    double share(std::size_t rail) const noexcept { return shares_[rail]; }

    /// Every now and then, some 10 ms apart. `usable` has a bit for each rail; `are_clear`: no pieces are under way,
    /// but on the one that carries whole messages. True: a trial has ended, see rates().
    bool on_time(Instant now, std::uint64_t usable, bool are_clear) noexcept;

    /// Of the last trial, in bytes per second.
    struct Rates {
        double single = 0;
        double striped = 0;
    };
    const Rates& rates() const noexcept { return rates_; }

private:
    static constexpr std::size_t steps = 6; // with one rail, with all, and so on

    void start_over(Instant now) noexcept;
    void learn_shares(bool is_pressed) noexcept;
    void begin_step(Instant now) noexcept;
    bool end_step(Instant now, bool are_clear) noexcept;
    void begin_period(Instant now) noexcept;
    std::optional<double> end_period(Instant now) const noexcept;
    void conclude(Instant now) noexcept;

    bool always_;
    bool is_striped_ = false;
    bool pays_ = false; // said the last trial
    std::uint64_t usable_ = 0;
    std::vector<double> shares_; // their sum is 1
    std::vector<double> given_;  // since the last on_time()
    Rates rates_;

    bool is_pressed_ = false; // a sender was refused since the last on_time()
    Instant pressed_at_{};    // when that was last so
    Instant pressed_since_ = never;
    std::uint64_t bytes_ = 0;
    std::uint64_t messages_ = 0;

    Instant try_at_{};
    Duration try_again_after_ = try_again_after;
    std::optional<std::size_t> step_; // of a trial
    Instant trial_began_{};
    Instant began_{}; // the step, or its period
    bool is_measuring_ = false;
    std::array<double, steps> measured_{};
};

} // namespace kumi::device::composite
