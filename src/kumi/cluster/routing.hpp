#pragma once

// Who reaches whom by what: the paper's rules for channels and routes (sections 4.1 and 4.2), as a pure function of the
// cluster and the placement.
//
//   - Nodes of one host talk through shared memory.
//   - Others use the network of highest priority that joins their hosts, on the channel of the destination's slot.
//   - Beyond the paper: hosts that no network joins are reached through others, by as few hops as there are. Each hop
//     is one nearer to the destination than the one before, so that no message goes in circles.
//
// What a node finds out when it tries a route (nobody answers there) is not known here; it comes in as `broken`.

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
    NetworkIndex network = 0;  // direct: that one; relayed: that of the first hop
    std::uint32_t channel = 0; // on that network, or of shared memory
    Node next = 0;             // whom the message is given to: the destination, or the first relay
    std::uint32_t hops = 0;    // 1 when it is direct

    friend bool operator==(const Route&, const Route&) = default;
};

/// A way that was looked at and not taken, with the reason.
struct Rejected {
    enum class Why : std::uint8_t { two_hosts, not_best, absent, no_neighbours, silent };
    std::string way; // "lan", "shared memory"
    Why why = Why::not_best;
    std::string text; // the reason in words
};

/// How many channels of each kind have to be opened, in the whole cluster: figure 5 of the paper.
struct ChannelCounts {
    std::uint32_t shared_memory = 0;
    std::vector<std::uint32_t> by_network;
};

/// A network between two hosts on which nobody answered.
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
    /// Whether that network, too, takes messages from one to the other without a relay.
    bool may_use(Node from, Node to, NetworkIndex network) const noexcept {
        return !obstacle(placement_[from].host, placement_[to].host, network);
    }
    /// The paper's notation: "S0", "M1"; ">M1" for a relay's first hop, "-" for oneself, "!" for no way at all.
    std::string text(const Route& route) const;
    /// All other ways, the best first.
    std::vector<Rejected> rejected(Node from, Node to) const;
    ChannelCounts channels() const;
    /// Pairs of different nodes that are alike in all that decides about their routes, in the order of their first
    /// pairs.
    struct Decided {
        Node from = 0, to = 0; // the first of them
        std::uint64_t pairs = 0;
    };
    std::vector<Decided> decisions() const;

private:
    struct Link { // between two hosts
        bool direct = false;
        NetworkIndex network = 0;  // the best, if direct
        std::uint32_t distance = 0; // hops; 0: no way
        HostIndex next = 0;        // on the way, if it is not direct
    };

    /// Hosts with nodes that are on the same networks: what holds for one of them holds for all.
    struct Alike {
        HostIndex first = 0;
        std::optional<HostIndex> second{};
        std::vector<Node> nodes{}; // in their order
        std::uint64_t pairs = 0; // of two different nodes on one host
        std::size_t slots = 0;   // most nodes on a host
    };

    std::size_t index(HostIndex from, HostIndex to) const noexcept {
        return std::size_t{alike_of_[from]} * alike_.size() + alike_of_[to];
    }
    const Link& link(HostIndex from, HostIndex to) const noexcept { return links_[index(from, to)]; }
    Link& link(HostIndex from, HostIndex to) noexcept { return links_[index(from, to)]; }
    std::optional<Rejected::Why> obstacle(HostIndex from, HostIndex to, NetworkIndex network) const noexcept;
    std::string in_words(Rejected::Why why, HostIndex from, HostIndex to, NetworkIndex network) const;
    void find_alike();
    void find_ways_to(HostIndex destination);

    Cluster cluster_;
    Placement placement_;
    std::vector<Alike> alike_;                       // by their first hosts
    std::vector<std::uint32_t> alike_of_;            // by host, for those with nodes: its place in alike_
    std::vector<std::vector<std::uint32_t>> places_; // of a host on a network, by network and host: for topologies
    std::vector<std::uint32_t> members_;             // by network
    std::set<Broken> broken_;
    std::vector<Link> links_;                        // see index()
    std::vector<std::vector<Node>> nodes_on_;        // by host and slot
};

} // namespace kumi::cluster
