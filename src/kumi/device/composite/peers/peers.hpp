#pragma once

// The peers of a node, and what all that deals with them shares: the links, the time, the lists of peers that need
// attention, the counters. A pure state machine, like all of Networks.

#include "kumi/device/composite/peers/peer.hpp"

#include <optional>
#include <span>
#include <vector>

namespace kumi::device::composite {

/// What a letter is given to: a channel and the number of a neighbour there.
struct Outlet {
    pm::Channel* channel;
    Node number;
    const Path* path = nullptr; // by which the neighbour and others pass it on; null: the neighbour is its destination

    /// `letter`: an envelope without a path, and what is in it. False: there is no room.
    bool give(Bytes letter) const noexcept;
};

/// Where a letter came from.
struct Inlet {
    Link& link;
    Node number;
};

class Peers {
public:
    static constexpr Duration tick_time = std::chrono::milliseconds(10);

    /// `ways_to`: by node, the best first; empty for self and for nodes that are reached otherwise.
    Peers(Node self, std::vector<Link> links, const std::vector<std::vector<PlannedWay>>& ways_to,
          const StripeOptions& stripes);
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;

    NetworkCounters counters;

    Node self() const noexcept { return self_; }
    Peer& operator[](Node node) noexcept { return peers_[node]; }
    const Peer& operator[](Node node) const noexcept { return peers_[node]; }
    /// By node, self included, which has no ways.
    std::vector<Peer>& all() noexcept { return peers_; }
    const std::vector<Peer>& all() const noexcept { return peers_; }
    std::span<Link> links() noexcept { return links_; }
    /// The largest message that all links take.
    std::size_t message_bytes_max() const noexcept { return message_bytes_max_; }

    // ---- the time, as the last call said that knew it

    Instant now() const noexcept { return now_; }
    void set_now(Instant now) noexcept { now_ = now; }
    void on_tick(Instant now) noexcept { now_ = ticked_ = now; }
    /// When on_time() is to be called at the latest; until then a node may sleep.
    Instant next_tick() const noexcept { return watched_.empty() ? never : ticked_ + tick_time; }

    // ---- peers that need attention

    /// Something may have to be found out about the ways of a peer, from time to time.
    void watch(Peer& peer) noexcept;
    std::vector<Node>& watched() noexcept { return watched_; }
    /// Something waits to be sent to a peer.
    void make_pending(Peer& peer);
    std::vector<Node>& pending() noexcept { return pending_; }

    // ---- letters

    Envelope envelope(const Peer& peer, Envelope::Kind kind, Sequence sequence) const noexcept;
    /// Keeps a letter of this node until there is room.
    void keep_own(Peer& peer, Letter letter);
    /// Keeps something to be said to a peer.
    void note(Peer& peer, Envelope::Kind kind, Sequence sequence = 0);
    /// The peer is to be told what has arrived.
    void owe_word(Peer& peer);
    void count_sent(Peer& peer, std::size_t bytes) noexcept {
        ++peer.out.sent.messages;
        peer.out.sent.bytes += bytes;
        watch(peer);
    }

    // ---- room

    /// Other letters wait for room, and would take it before a program that was refused tries again. So its messages
    /// wait here, too.
    bool is_contended(const Peer& peer) const noexcept {
        return !peer.out.passing.empty() || pending_.size() > (peer.pending ? 1u : 0u);
    }
    /// Finds out whether messages go to the peer by a device at once. After every change of what that depends on.
    void update_plain(Peer& peer) noexcept;
    /// A sender is refused because of what is in between: it is told when there is room.
    void refuse(Peer& peer) noexcept;
    /// There may be room for a sender that was refused.
    void note_room(Peer& peer) noexcept {
        if (std::exchange(peer.out.refused, false)) room_made_ = true;
    }
    /// All senders that wait are to look again.
    void note_room_for_all() noexcept { room_made_ = true; }
    /// Room was made since the last call.
    bool take_room_made() noexcept { return std::exchange(room_made_, false); }

    // ---- ways

    /// What a letter is given to that goes by that way; nothing if there is no way on.
    std::optional<Outlet> outlet(const Peer& peer, std::size_t way) const noexcept;
    std::optional<Outlet> outlet(const Peer& peer) const noexcept { return outlet(peer, peer.ways.current_index()); }
    /// Nothing, if no network joins this node with the first on that path.
    std::optional<Outlet> outlet_by(const Path& path) const noexcept;
    /// The system says of the way that it works; over other nodes, of the way to the first of them.
    bool is_up(const Way& way) const noexcept;
    /// It is up, and the peer does not say that it hears nothing there.
    bool may_use(const Way& way) const noexcept { return is_up(way) && !way.deaf; }

private:
    void add_ways(Peer& peer, const std::vector<PlannedWay>& planned);

    Node self_;
    std::size_t message_bytes_max_;
    std::vector<Link> links_;  // never moved
    std::vector<Peer> peers_;  // never moved
    std::vector<Node> watched_;
    std::vector<Node> pending_;
    Instant ticked_{};
    Instant now_{};
    bool room_made_ = false; // for a sender that was refused
};

} // namespace kumi::device::composite
