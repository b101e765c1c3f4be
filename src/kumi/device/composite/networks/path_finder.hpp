#pragma once

// Finds paths over other nodes. A seek goes from neighbour to neighbour over what works now and collects the nodes that
// it passes; the destination answers by the way it came. No node keeps a map. When seeks are sent is in
// path_search.hpp.

#include "kumi/device/composite/networks/relay.hpp"

#include <span>

namespace kumi::device::composite {

class PathFinder {
public:
    PathFinder(Peers& peers, const Health& health, Relay& relay) noexcept
        : peers_(peers), health_(health), relay_(relay) {}

    /// Seeks a path to a peer, unless that was done just now.
    void seek(Peer& peer, Instant now);
    /// The same while a path works that is longer than planned.
    void seek_shorter(Peer& peer, Instant now);

    /// A seek came, for this node or to be passed on.
    void on_seek(const Envelope& head, Bytes letter, Inlet from);
    /// A path to `peer` was found.
    void on_found(Peer& peer, const Envelope& head, Bytes letter, Instant now);
    /// A neighbour of `node` waits for an answer of that node too: the node is busy or stopped, not out of reach. So
    /// the search begins anew.
    void on_owes(Node node, Instant now) noexcept;

    /// Letters for the peer that go over other nodes take this path. `is_sent_again`: so do those that were given to
    /// another before.
    void take_path(Peer& peer, Path path, bool is_sent_again);
    /// The path does not work any more; if another was found, that is taken.
    void drop_path(Peer& peer);

private:
    void send_seek(Peer& peer, unsigned fan, Instant now);
    void ping_path(Peer& peer);
    void spread(const Envelope& head, std::span<const Node> path);

    Peers& peers_;
    const Health& health_;
    Relay& relay_;
    Sequence next_seek_ = 0;
};

} // namespace kumi::device::composite
