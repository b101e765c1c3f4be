#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// Runs a node of `kumi bench group`. `words`: what the node does, and the place. Returns an exit code.
int group_node(std::span<const std::string> words);

// What nodes do. Node 0 reports rows, whose names end with the place.

/// Multicasts of these sizes to random sets, one at a time. `metric` is part of the row's name. Kumi creates nothing
/// for a new set, so it does the same for "multicast" and "create".
int multicast_node(const std::string& metric, std::span<const std::size_t> sizes, const std::string& place);
/// The time of the call alone, at a master that is no member.
int master_node(const std::string& place);
/// Sums of doubles over all nodes, at all nodes.
int allreduce_node(const std::string& place);
/// Parts of unequal sizes from each node to each, into arrays that are there.
int alltoallv_node(const std::string& place);

} // namespace kumi::bench
