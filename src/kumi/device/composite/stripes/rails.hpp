#pragma once

// Which networks large messages to a node go over, and which of them takes the next piece.
//
// Rates. What has arrived by a network while it always had something to carry, is its rate. Networks that carry nothing
// yet are timed: each is given one letter that nobody waits for, and the time until it has arrived tells the rate. A
// network that is slower than a sixteenth of the best is never given a piece: it could add a few percent, and would
// hold up whole messages. Timing costs the other networks nothing.
//
// Pieces. Each piece goes to the network that will have finished it first, as far as the rates tell. So all networks
// finish at about the same time. Rates go on being measured, and with them the shares change. A network that is idle
// while senders wait gets more, until it is not.
//
// Trials. Rates alone do not tell whether stripes pay: two networks on one cable carry no more than one, and a
// processor that is busy with one network has nothing left for another. So, if the rates promise 10 % or more, whole
// messages by one network and pieces by all that are worth it are tried in turns, three times each for some 50 ms;
// the median with pieces must be better by 10 %. It is tried again every now and then, the more rarely the more
// often it did not pay; and sooner when all networks together carry less than one did. Stripes that are in use stay
// while they bring 3 %.
//
// Rates are measured, and trials are made, only while senders are refused because large messages are sent faster than
// they leave.
//
// Pure: no clock, no channel. The caller says what was refused, what has arrived, and the time.

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
    static constexpr std::uint64_t period_bytes = std::uint64_t{1} << 20;    // at least
    static constexpr Duration pressed_time = std::chrono::milliseconds(100); // before anything is timed or tried
    static constexpr Duration pause_max = std::chrono::milliseconds(50);     // without a refusal: no sender waits
    static constexpr Duration try_again_after = std::chrono::seconds(1);
    static constexpr Duration try_again_after_max = std::chrono::seconds(60);
    static constexpr Duration try_again_soonest = std::chrono::seconds(2);
    static constexpr int try_again_factor = 20; // or after so many times what a trial took
    static constexpr Duration time_again_after_max = std::chrono::seconds(10); // which costs nothing
    static constexpr double worth_it = 1.0 / 16;                               // of the best network's rate
    // A rate is measured over so many bytes, or so long, and at least over the first of the times.
    static constexpr std::uint64_t look_bytes = std::uint64_t{1} << 20;
    static constexpr Duration look_time = std::chrono::milliseconds(10);
    static constexpr Duration look_time_max = std::chrono::milliseconds(100);

    /// `always`: striped whenever two or more may be used, without timing and trials.
    explicit Rails(std::size_t count = 0, bool always = false);

    /// Large messages are to be sent in pieces.
    bool are_striped() const noexcept { return is_striped_; }
    /// Has a bit for each rail that is worth a piece, as far as is known.
    std::uint64_t worthy() const noexcept { return worthy_; }

    /// A large message was refused for want of room.
    void on_refused() noexcept { is_pressed_ = true; }

    // ---- rates

    /// What a rail was given since it was opened, and what of that may not have arrived, to the size of a block of
    /// memory. Before each piece is given, and before on_time().
    void look(std::size_t rail, std::uint64_t given, std::uint64_t waiting) noexcept {
        Rail& one = rails_[rail];
        if (given > one.arrived + waiting) one.arrived = given - waiting; // never less than before: blocks are large
        one.was_idle = one.was_idle || waiting == 0;
    }
    /// Bytes per second; 0: not known.
    double rate(std::size_t rail) const noexcept { return rails_[rail].rate; }
    /// The time that a rail takes for so many bytes, to be compared with that of other rails.
    double time_for(std::size_t rail, std::uint64_t bytes) const noexcept {
        const double rate = rails_[rail].rate;
        return static_cast<double>(bytes) / (rate > 0 ? rate : rate_of_unknown_);
    }

    // ---- timing

    /// Has a bit for each rail that a letter is to be given to now, to be timed.
    std::uint64_t to_be_timed() const noexcept { return to_be_timed_; }
    bool is_timing() const noexcept { return under_way_ != 0; }
    bool is_timing(std::size_t rail) const noexcept { return (under_way_ >> rail & 1) != 0; }
    void on_timed_given(std::size_t rail, std::size_t bytes, Instant now) noexcept;
    void on_timed_arrived(std::size_t rail, Instant now) noexcept;

    // ---- time

    /// Every now and then, some 10 ms apart. `usable` has a bit for each rail; `current` is the one that carries whole
    /// messages; `are_clear`: no pieces are under way on the others. True: a trial has ended, see rates().
    bool on_time(Instant now, std::uint64_t usable, std::size_t current, bool are_clear) noexcept;

    /// Of the last trial, in bytes per second.
    struct Rates {
        double single = 0;
        double striped = 0;
    };
    const Rates& rates() const noexcept { return rates_; }

private:
    static constexpr std::size_t steps = 6; // with one rail, with all, and so on
    static constexpr std::uint64_t all = ~std::uint64_t{0};

    struct Rail {
        double rate = 0;
        std::uint64_t arrived = 0; // bytes
        // Since the rate was last looked at:
        Instant since{};
        std::uint64_t arrived_before = 0;
        bool was_idle = false;
        bool carries = false; // something arrived when its rate was last looked at
        // The letter that is timed:
        Instant timed_at{};
        std::size_t timed_bytes = 0;
    };

    void start_over(Instant now) noexcept;
    void learn_rates(Instant now, bool is_pressed) noexcept;
    void learn_rate(std::size_t rail, Instant now) noexcept;
    static void begin_look(Rail& rail, Instant now) noexcept;
    void find_worthy() noexcept;
    bool do_rates_promise(double gain) const noexcept;
    void begin_timing(Instant now) noexcept;
    bool end_timing(Instant now) noexcept;
    void begin_step(Instant now) noexcept;
    bool end_step(Instant now, bool are_clear) noexcept;
    void begin_period(Instant now) noexcept;
    std::optional<double> end_period(Instant now) const noexcept;
    std::uint64_t arrived() const noexcept;
    void conclude(Instant now, bool pays, Duration rest) noexcept;

    bool always_;
    bool is_striped_ = false;
    bool pays_ = false; // said the last trial
    std::uint64_t usable_ = 0;
    std::uint64_t worthy_ = all;
    std::size_t current_ = 0;
    std::vector<Rail> rails_;
    double rate_of_unknown_ = 1;
    Rates rates_;

    bool is_pressed_ = false; // a sender was refused since the last on_time()
    Instant pressed_at_{};    // when that was last so
    Instant pressed_since_ = never;

    Instant try_at_{};
    Duration try_again_after_ = try_again_after;
    Instant trial_began_{};
    bool is_timed_ = false;           // a trial has begun: its first part times rails
    std::uint64_t to_be_timed_ = 0;   // rails
    std::uint64_t under_way_ = 0;     // rails with a letter that is timed
    std::optional<std::size_t> step_; // of a trial
    Instant began_{}; // the step, or its period
    bool is_measuring_ = false;
    std::uint64_t arrived_before_ = 0; // the period
    std::array<double, steps> measured_{};
};

} // namespace kumi::device::composite
