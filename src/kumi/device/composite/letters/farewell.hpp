#pragma once

#include "kumi/base/clock.hpp"

#include <utility>

namespace kumi::device::composite {

/// Whether this node and one peer may leave. A node that passes on messages of another asks, before it leaves, whether
/// there will be more. Pure.
class Farewell {
public:
    /// The question, or its answer, may get lost with a relay that leaves: it is asked again.
    static constexpr Duration ask_every = std::chrono::milliseconds(200);

    /// This node passes on messages of the peer.
    void set_served() noexcept { is_served_ = true; }
    /// The peer may still send through this node.
    bool needs_this_node() const noexcept { return is_served_ && !is_done_; }
    /// True if the peer is to be asked now whether it is done.
    bool asks(Instant now) noexcept {
        if (!needs_this_node() || now - asked_ <= ask_every) return false;
        asked_ = now;
        return true;
    }
    /// The peer says that it will send nothing more through this node.
    void on_done() noexcept { is_done_ = true; }

    /// This node has told the peer that it takes no more messages.
    bool has_told_closed() const noexcept { return has_told_closed_; }
    void set_told_closed() noexcept { has_told_closed_ = true; }

    /// The peer, which has passed on messages of this node, would leave.
    void on_leaving() noexcept { is_asked_ = true; }
    /// The peer waits to be told that this node is done.
    bool owes_answer() const noexcept { return is_asked_; }
    /// The same; and it is told now.
    bool take_question() noexcept { return std::exchange(is_asked_, false); }

private:
    bool is_served_ = false;
    bool is_done_ = false;
    bool is_asked_ = false;
    bool has_told_closed_ = false;
    Instant asked_{};
};

} // namespace kumi::device::composite
