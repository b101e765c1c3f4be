#pragma once

// The location of nodes in nested domains: clusters, and hosts inside them. A message to a set goes to one member of
// each domain and spreads inside the domain, so slow networks carry it once. All nodes of a job have the same topology,
// so each of them can compute from a set alone which node passes a message on to which.

#include "kumi/group/plan/tree.hpp"
#include "kumi/group/set.hpp"

#include <cstdint>
#include <vector>

namespace kumi::group {

/// Levels from the largest domains to the smallest; each level has the number of the domain of each node. Without
/// levels all nodes are equally near.
class Topology {
public:
    Topology() = default;
    explicit Topology(std::vector<std::vector<std::uint32_t>> levels);

    std::size_t levels() const noexcept { return levels_.size(); }
    std::uint32_t domain(std::size_t level, Node node) const noexcept { return levels_[level][node]; }

private:
    std::vector<std::vector<std::uint32_t>> levels_; // without levels that separate nothing
};

/// Finds the clusters and hosts from the networks that connect the hosts. `firsts`: by node, the first node on its
/// host. `carriers`: for each pair of hosts, in the order of their first nodes, the number of the network that carries
/// messages between them. Hosts that are connected by other networks than the one that connects all hosts are a
/// cluster.
Topology find_topology(const std::vector<Node>& firsts, const std::vector<std::vector<std::uint32_t>>& carriers);

/// A node that a message is passed on to, and the members that this node gets it for, itself included.
struct Child {
    Node to;
    Set part;
};

/// The nodes that `self` passes a message for `part` on to, in the order of sending. Their parts and `self` together
/// are `part`; if `self` is not in it, their parts are all of it.
std::vector<Child> children_of(const Set& part, Node self, const Topology& topology, const Pace& pace);

/// A list of nodes that pass blocks around. The first node has all blocks.
struct Circle {
    std::vector<Node> members;
    Node rank; // of self
};
/// The circles that `self` is in when blocks go to `set` from `root`; both nodes are members. If `self` is not the
/// root, the first circle is the one in which it gets the blocks. In the others it is the first node.
std::vector<Circle> circles_of(const Set& set, Node root, Node self, const Topology& topology);

} // namespace kumi::group
