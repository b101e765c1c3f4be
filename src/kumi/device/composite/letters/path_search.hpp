#pragma once

// The search for a path to one peer: when this node sends the next seek, and to how many neighbours. A seek that found
// nothing is repeated after a quarter of the time that the search has taken already. Each goes to twice as many
// neighbours as the one before: in large clusters most searches end with the first seek. Pure.

#include "kumi/base/clock.hpp"
#include "kumi/device/composite/letters/envelope.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace kumi::device::composite {

class PathSearch {
public:
    static constexpr Duration again_min = std::chrono::milliseconds(100);
    static constexpr Duration again_max = std::chrono::seconds(1);
    /// Neighbours that a seek goes to, as powers of two: of the first seek, and the most.
    static constexpr unsigned first_fan = 2;
    static constexpr unsigned fan_max = 20;
    /// While a path is longer than planned a shorter one is sought this often, and half as often each time, up to 32 s.
    static constexpr Duration shorter_every = std::chrono::seconds(1);
    static constexpr unsigned shorter_doublings = 5;

    bool is_on() const noexcept { return since_ != never; }
    /// Since when nothing is found; never: no search is on.
    Instant since() const noexcept { return since_; }

    /// Begins a search, or goes on with it. Answers the fan of the seek that is to be sent now, with number `next`;
    /// nothing if it is too early.
    std::optional<unsigned> seek(Instant now, Sequence next) noexcept {
        if (!is_on()) {
            since_ = now;
            first_ = next;
            seeks_ = 0;
        } else if (now - sought_ < std::clamp<Duration>((now - since_) / 4, again_min, again_max)) {
            return std::nullopt;
        }
        return std::min(first_fan + seeks_, fan_max);
    }
    /// The same where a path is in use that is longer than it should be.
    std::optional<unsigned> seek_shorter(Instant now, Sequence next) noexcept {
        if (now - sought_ < shorter_every * (1u << std::min(seeks_, shorter_doublings))) return std::nullopt;
        first_ = next;
        return fan_max;
    }
    void on_sent(Instant now) noexcept {
        ++seeks_;
        sought_ = now;
    }
    /// Whether a path that the seek of that number has found belongs to this search.
    bool is_answer(Sequence seek) const noexcept { return !is_before(seek, first_); }
    /// The time without success counts from now on, if a search is on.
    void restart(Instant now) noexcept {
        if (is_on()) since_ = now;
    }
    void end() noexcept {
        if (!is_on()) return;
        since_ = never;
        seeks_ = 0;
    }

private:
    Instant since_ = never;
    Sequence first_ = 0; // seek of this search
    unsigned seeks_ = 0; // in it
    Instant sought_{};   // when the last was sent
};

/// The last seeks of one source that this node has passed on or answered. Pure.
class SeenSeeks {
public:
    /// Notes a seek. False: this node has seen it before, and not by a longer way.
    bool is_news(Sequence number, std::size_t hops) noexcept {
        for (Seen& seen : seen_)
            if (seen.hops != 0 && seen.number == number) return seen.hops > hops ? (seen.hops = hops, true) : false;
        seen_[next_++ % seen_.size()] = {number, hops};
        return true;
    }

private:
    struct Seen {
        Sequence number = 0;
        std::size_t hops = 0; // 0: none
    };

    std::array<Seen, 8> seen_{};
    std::size_t next_ = 0;
};

} // namespace kumi::device::composite
