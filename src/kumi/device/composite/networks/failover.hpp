#pragma once

// When ways are left and taken. A way has failed when the system says so, when the peer says that it hears nothing
// there, or when the peer owes an answer by it and answers by another way. A better way is tried all along.

#include "kumi/device/composite/networks/path_finder.hpp"
#include "kumi/device/composite/networks/sender.hpp"

#include <string>
#include <vector>

namespace kumi::device::composite {

class Failover {
public:
    Failover(Peers& peers, Health& health, Striper& striper, Sender& sender, PathFinder& paths) noexcept
        : peers_(peers), health_(health), striper_(striper), sender_(sender), paths_(paths) {}

    /// What nodes are called when the user is told of them; "node 3" if this was not said.
    void set_names(std::vector<std::string> names) { names_ = std::move(names); }

    /// Looks at all ways to a peer, from time to time: leaves those that have failed, and tries better ones.
    void consider(Peer& peer, Instant now);
    /// Goes back to a better way when that works again.
    void try_better(Peer& peer, Instant now);

    /// Answers by the way that the ping came. A way that was full when it failed has no room until it works again: then
    /// the answer waits. If it were dropped the peer would ask again after a second only, and not go back to this way
    /// before.
    void on_ping(Peer& peer, const Envelope& head, Inlet from);
    void on_pong(Peer& peer, const Envelope& head, Bytes letter, Instant now);
    /// The peer says that it hears nothing on a network, or that it may hear again.
    void on_deaf(Peer& peer, std::uint32_t network, bool is_deaf, Instant now);
    /// Node `from` says that no network joins it with `to` any more.
    void on_broken(Node from, Node to, Instant now);
    /// Looks which links are up. The peers, which do not see it, are told.
    void on_interfaces_changed();

private:
    void consider_rails(Peer& peer, Instant now);
    void leave_rail(Peer& peer, std::size_t way, const char* why, Instant now);
    bool answers_elsewhere(Peer& peer, std::size_t way, Instant now);
    bool path_answers_elsewhere(Peer& peer, std::size_t way, std::size_t index, Instant now);
    void ping(Peer& peer, std::size_t way, Instant now);
    bool move_from_failed(Peer& peer, const char* why, Instant now);
    void move(Peer& peer, std::size_t way);
    void collect_unarrived(Peer& peer, std::size_t way);
    std::string name_of(Node node) const;
    void tell_silence(Peer& peer, Instant now);
    void tell(Peer& peer, const Way& from, const char* why, const std::string& instead, Instant now);

    Peers& peers_;
    Health& health_;
    Striper& striper_;
    Sender& sender_;
    PathFinder& paths_;
    std::vector<std::string> names_; // by node
};

} // namespace kumi::device::composite
