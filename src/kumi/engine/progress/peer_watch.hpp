#pragma once

// Which nodes are lost, and when it is time to look for nodes that are silent. A node counts as gone one look after the
// channel has reported it: what it sent before is handled first. All functions require the turn.
//
// Every thread looks before it sleeps. In a large job, where a look takes long, only some looks a second are made: what
// a sleep costs does not depend on the number of nodes. A thread that has not looked sleeps no longer than until the
// next look.

#include "kumi/base/clock.hpp"
#include "kumi/engine/progress/progress_loop.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/node.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace kumi::engine {

using pm::Node;

class PeerWatch {
public:
    PeerWatch(const pm::Channel& channel, Duration keepalive_every, std::function<Instant()> clock)
        : channel_(channel), fates_(channel.nodes()), keepalive_every_(keepalive_every), clock_(std::move(clock)),
          next_look_(channel.traits().ignores_deadlines ? never : clock_() + keepalive_every_) {}

    /// Calls `on_gone(node)` for every node that has gone since the last look. True: the channel has just reported a
    /// node, and what that node sent before is to be handled now.
    template <class OnGone>
    bool look(const Turn&, OnGone&& on_gone) {
        if (!is_look_due()) return false;
        bool is_any_going = false;
        for (Node node = 0; node < fates_.size(); ++node) {
            if (fates_[node] == Fate::gone || !channel_.lost(node)) continue;
            if (fates_[node] == Fate::here) {
                fates_[node] = Fate::going;
                is_any_going = true;
                continue;
            }
            fates_[node] = Fate::gone;
            gone_.push_back(node);
            on_gone(node);
        }
        if (is_any_going) next_full_look_ = {};
        return is_any_going;
    }
    /// The longest that a thread may sleep after look().
    Duration sleep_max() const noexcept {
        if (!has_passed_over_) return keepalive_every_;
        return std::clamp(Duration(next_full_look_ - clock_()), Duration{0}, keepalive_every_);
    }
    /// True once in each interval: keep-alives are to be sent.
    bool is_keepalive_due(const Turn&) {
        const Instant time = clock_();
        if (time < next_look_) return false;
        next_look_ = time + keepalive_every_;
        ++looks_;
        return true;
    }

    bool is_gone(Node node) const noexcept { return fates_[node] == Fate::gone; }
    bool has_losses(const Turn&) const noexcept { return !gone_.empty(); }
    /// All that are gone, in the order in which they were.
    const std::vector<Node>& gone(const Turn&) const noexcept { return gone_; }
    /// How often keep-alives were due.
    std::uint64_t looks() const noexcept { return looks_; }
    Duration keepalive_every() const noexcept { return keepalive_every_; }

private:
    enum class Fate : std::uint8_t { here, going, gone };

    bool is_look_due() noexcept {
        constexpr std::size_t always_max = 64; // a look at so many takes as long as reading the clock some times
        constexpr Duration look_every = std::chrono::milliseconds(50);
        if (fates_.size() <= always_max) return true;
        const Instant time = clock_();
        has_passed_over_ = time < next_full_look_;
        if (has_passed_over_) return false;
        next_full_look_ = time + look_every;
        return true;
    }

    const pm::Channel& channel_;
    std::vector<Fate> fates_; // by node
    std::vector<Node> gone_;
    Duration keepalive_every_;
    std::function<Instant()> clock_;
    Instant next_look_;
    Instant next_full_look_{};     // in a large job
    bool has_passed_over_ = false; // the last look() was skipped
    std::uint64_t looks_ = 0;
};

} // namespace kumi::engine
