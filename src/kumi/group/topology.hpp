#pragma once

// Where nodes are, in domains inside domains: clusters first, then hosts. Messages to a set go to one member of each
// domain and spread inside it, so slow networks carry each of them once. All nodes of a job have the same topology, so
// each of them can tell from a set alone who passes a message on to whom.

#include "kumi/group/plan/tree.hpp"
#include "kumi/group/set.hpp"

#include <cstdint>
#include <vector>

namespace kumi::group {

/// By level, from the largest domains to the smallest; in each, by node, the number of its domain. No levels: all nodes
/// are equally near.
class Topology {
public:
    Topology() = default;
    explicit Topology(std::vector<std::vector<std::uint32_t>> levels);

    std::size_t levels() const noexcept { return levels_.size(); }
    std::uint32_t domain(std::size_t level, Node node) const noexcept { return levels_[level][node]; }

private:
    std::vector<std::vector<std::uint32_t>> levels_; // without those that tell nothing
};

/// What carries messages between hosts tells which of them are near each other: the topology of clusters and hosts.
/// `firsts`: by node, the first of those on its host. `carriers`: by host, in the order of their first nodes, what
/// carries messages from it to each of them; a number for each network. Hosts that are joined by others than the
/// network that joins all are a cluster.
Topology find_topology(const std::vector<Node>& firsts, const std::vector<std::vector<std::uint32_t>>& carriers);

/// To whom a message is passed on, and for whom: `to` is one of them.
struct Child {
    Node to;
    Set part;
};

/// Whom `self` passes a message on to that is for `part`, in the order of sending; together, with self, they are the
/// part. `self` need not be in it: then it is added.
std::vector<Child> children_of(const Set& part, Node self, const Topology& topology, const Pace& pace);

/// A list of nodes that passes blocks round; the first has them.
struct Circle {
    std::vector<Node> members;
    Node rank; // of self
};
/// The circles that `self` is in when blocks go to `set` from `root`, both of which are members: the one where it gets
/// them, if it is not the root, and after that those where it is the first.
std::vector<Circle> circles_of(const Set& set, Node root, Node self, const Topology& topology);

} // namespace kumi::group
