#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/device/composite/peers/link.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace kumi::device::composite {

/// A way to one peer, and what is known of its health.
struct Way {
    Link* link;   // null: other nodes pass messages on
    Node number;  // of the peer, on that link
    Path path;    // the nodes that pass messages on; empty: not known
    Path found{}; // another path that works, found since this one is in doubt
    std::string name;
    bool is_relayed() const noexcept { return link == nullptr; }

    bool deaf = false;                  // the peer says that it hears nothing on it
    bool doubted = false;               // it has failed, and has not answered since
    bool has_pieces = false;            // some that were given to it may not have arrived
    std::optional<Instant> suspected{}; // since when the peer owes an answer on it for too long
    Instant unusable_since = never;     // the peer could not answer by it
    bool pinged = false;                // and not answered yet
    Instant pinged_at{};
    Instant answered_at{};
    Instant path_answered_at{};          // by the path itself, where another may have been found
    unsigned answers = 0;                // in a row, in time
    std::optional<Sequence> owes_pong{}; // to the peer's last ping, because there was no room

    /// It is planned, and has never answered: it is treated like one that the peer does not hear any more, and does not
    /// count when this node asks itself whether the peer is lost.
    void set_never_answered() noexcept {
        deaf = doubted = true;
        unusable_since = Instant{};
    }
    bool has_never_answered() const noexcept { return unusable_since == Instant{}; }
    /// The peer has answered a ping in time, or not.
    void on_pong(Instant now, Duration in_time) noexcept {
        answers = now - pinged_at <= in_time ? answers + 1 : 0;
        answered_at = now;
        deaf = false; // whatever was said before
    }
};

/// The ways to one peer, the best first: networks that join it with this node, then other nodes that pass messages on.
/// Messages go by one of them, the current way.
class PeerWays {
public:
    void add(Way way) { ways_.push_back(std::move(way)); }

    bool empty() const noexcept { return ways_.empty(); }
    std::size_t size() const noexcept { return ways_.size(); }
    Way& operator[](std::size_t index) noexcept { return ways_[index]; }
    const Way& operator[](std::size_t index) const noexcept { return ways_[index]; }
    auto begin() noexcept { return ways_.begin(); }
    auto end() noexcept { return ways_.end(); }
    auto begin() const noexcept { return ways_.begin(); }
    auto end() const noexcept { return ways_.end(); }
    Way& back() noexcept { return ways_.back(); }

    std::size_t current_index() const noexcept { return current_; }
    Way& current() noexcept { return ways_[current_]; }
    const Way& current() const noexcept { return ways_[current_]; }
    /// The current way is over other nodes.
    bool is_relayed() const noexcept { return current().is_relayed(); }
    /// The current way is a network that joins the peer with this node.
    bool is_neighbour() const noexcept { return !empty() && !is_relayed(); }
    /// The way over other nodes; null if there is none.
    Way* relayed() noexcept { return !empty() && back().is_relayed() ? &back() : nullptr; }
    const Way* relayed() const noexcept { return !empty() && ways_.back().is_relayed() ? &ways_.back() : nullptr; }
    /// The first node of the path that messages take to the peer; nothing where none is known, or the peer is a
    /// neighbour.
    std::optional<Node> first_relay() const noexcept {
        if (empty() || !is_relayed() || current().path.empty()) return std::nullopt;
        return current().path.front();
    }

    /// A better way that is to become the current one when all that was sent by that has arrived. Nothing new is sent
    /// until then.
    const std::optional<std::size_t>& next() const noexcept { return next_; }
    void set_next(std::size_t index) noexcept { next_ = index; }
    void drop_next() noexcept { next_.reset(); }
    /// Messages go that way from now on.
    void use(std::size_t index) noexcept {
        current_ = index;
        next_.reset();
    }
    /// Uses the best way that has answered, if one has. True: that is not the first.
    bool use_first_that_answers() noexcept {
        const auto answers = std::find_if(ways_.begin(), ways_.end(), [](const Way& way) { return !way.deaf; });
        if (answers == ways_.begin() || answers == ways_.end()) return false;
        current_ = static_cast<std::size_t>(answers - ways_.begin());
        return true;
    }

private:
    std::vector<Way> ways_;
    std::size_t current_ = 0;
    std::optional<std::size_t> next_;
};

} // namespace kumi::device::composite
