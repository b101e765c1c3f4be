#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// Runs a node of `kumi bench patterns`. `words`: what the node does, and the place. Returns an exit code.
int patterns_node(std::span<const std::string> words);

// What nodes do. Node 0 reports rows, whose names end with the place.

/// "pairs", "pingpongs" or "incast": the bandwidth of several nodes that send at once.
int rates_node(const std::string& what, const std::string& place);
/// Multicasts of several masters at once; the place is how many.
int multicasts_node(const std::string& place);
/// Barriers of all nodes.
int barriers_node(const std::string& place);
/// A message of PM from one of two nodes to the other, which barriers are compared with.
int message_node(const std::string& place);
/// An exchange of equal parts among all nodes.
int placement_node(const std::string& place);

} // namespace kumi::bench
