#pragma once

// Finds the route between each two nodes by the paper's rules for channels and routes (sections 4.1 and 4.2), as a pure
// function of the cluster and the placement.
//
//   - Nodes of one host use shared memory.
//   - Other nodes use the network of highest priority between their hosts, on the channel of the destination's slot.
//   - Beyond the paper: hosts without a common network are reached through other hosts, with as few hops as possible.
//     Each hop is one nearer to the destination than the one before, so no message goes in circles.
//
// Whether a route works is not known here. Networks on which a host did not answer are passed in as `broken`.

#include "kumi/cluster/cluster.hpp"
#include "kumi/cluster/placement.hpp"

#include <cstdint>
#include <compare>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kumi::cluster {

using Node = std::uint32_t;

struct Route {
    enum class Kind : std::uint8_t { self, shared_memory, direct, relayed, none };
    Kind kind = Kind::none;
    NetworkIndex network = 0;  // of the first hop
    std::uint32_t channel = 0; // on that network, or of shared memory
    Node next = 0;             // the node that gets the message: the destination, or the first relay
    std::uint32_t hops = 0;    // 1 if the route is direct

    friend bool operator==(const Route&, const Route&) = default;
};

/// A network, or shared memory, that a route does not use, with the reason.
struct Rejected {
    enum class Why : std::uint8_t { two_hosts, not_best, absent, no_neighbours, silent };
    std::string way; // "lan", "shared memory"
    Why why = Why::not_best;
    std::string text; // the reason in words
};

/// How many channels of each kind must be opened in the whole cluster (figure 5 of the paper).
struct ChannelCounts {
    std::uint32_t shared_memory = 0;
    std::vector<std::uint32_t> by_network;
};

/// A network on which `to` did not answer `from`.
struct Broken {
    HostIndex from = 0;
    HostIndex to = 0;
    NetworkIndex network = 0;

    friend auto operator<=>(const Broken&, const Broken&) = default;
};

class Routing {
public:
    Routing(const Cluster& cluster, Placement placement, const std::vector<Broken>& broken = {});

    const Placement& placement() const noexcept { return placement_; }
    Node nodes() const noexcept { return static_cast<Node>(placement_.size()); }

    Route route(Node from, Node to) const noexcept;
    /// True if that network, whether the best or not, connects the two nodes without a relay.
    bool may_use(Node from, Node to, NetworkIndex network) const noexcept {
        return !obstacle(placement_[from].host, placement_[to].host, network);
    }
    /// The route in the paper's notation: "S0", "M1"; ">M1" for the first hop of a relayed route, "-" for the node
    /// itself, "!" for no route.
    std::string text(const Route& route) const;
    /// All networks that the route does not use, and shared memory if it does not use that; the best first.
    std::vector<Rejected> rejected(Node from, Node to) const;
    ChannelCounts channels() const;
    /// The pairs of different nodes, grouped: the routes of all pairs in a group are decided alike. In the order of the
    /// first pair of each group.
    struct Decided {
        Node from = 0, to = 0; // the first pair
        std::uint64_t pairs = 0;
    };
    std::vector<Decided> decisions() const;

private:
    struct HostRoute { // the route between two hosts
        bool direct = false;
        NetworkIndex network = 0;  // the best one, if direct
        std::uint32_t distance = 0; // hops; 0: no route
        HostIndex next = 0;        // the first relay, if not direct
    };

    /// Hosts with nodes that are on the same networks: the routes of one hold for all of them.
    struct HostClass {
        HostIndex first = 0;
        std::optional<HostIndex> second{};
        std::vector<Node> nodes{}; // in the order of their numbers
        std::uint64_t pairs = 0; // pairs of different nodes on one host
        std::size_t slots = 0;   // most nodes on one of the hosts
    };

    std::size_t index(HostIndex from, HostIndex to) const noexcept {
        return std::size_t{class_of_[from]} * classes_.size() + class_of_[to];
    }
    const HostRoute& host_route(HostIndex from, HostIndex to) const noexcept { return host_routes_[index(from, to)]; }
    HostRoute& host_route(HostIndex from, HostIndex to) noexcept { return host_routes_[index(from, to)]; }
    std::optional<Rejected::Why> obstacle(HostIndex from, HostIndex to, NetworkIndex network) const noexcept;
    std::string reason_text(Rejected::Why why, HostIndex from, HostIndex to, NetworkIndex network) const;
    void find_host_classes();
    void find_relayed_routes_to(HostIndex destination);

    Cluster cluster_;
    Placement placement_;
    std::vector<HostClass> classes_;                       // in the order of their first hosts
    std::vector<std::uint32_t> class_of_;            // by host, if it has nodes: its index in classes_
    std::vector<std::vector<std::uint32_t>> positions_; // of a host on a network, by network and host, for topologies
    std::vector<std::uint32_t> members_;             // by network: number of hosts on it
    std::set<Broken> broken_;
    std::vector<HostRoute> host_routes_;                        // see index()
    std::vector<std::vector<Node>> nodes_on_;        // by host and slot
};

} // namespace kumi::cluster
