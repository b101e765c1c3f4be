#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// A node of `kumi bench group`: what it does, and at which place. Answers an exit code.
int group_node(std::span<const std::string> words);

// What nodes do. Node 0 reports rows, whose names end with the place.

/// Multicasts of these sizes to sets at random, one at a time. `metric` is the row's: nothing has to be created for a
/// new set, so it is the same for "multicast" and "create".
int multicast_node(const std::string& metric, std::span<const std::size_t> sizes, const std::string& place);
/// What the call alone takes, at a master that is no member.
int master_node(const std::string& place);
/// Sums of doubles over all nodes, at all nodes.
int allreduce_node(const std::string& place);

} // namespace kumi::bench
