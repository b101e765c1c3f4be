#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// Runs a node of `kumi bench engine`. `words`: what the node does, and the place. Returns an exit code.
int engine_node(std::span<const std::string> words);

// What nodes do. Node 0 reports rows, whose names end with the place.

/// Two nodes: active messages and remote memory.
int pair_node(const std::string& place);
/// The limit of pair_node(): two nodes with messages of PM and copies by memcpy.
int limit_node(const std::string& place);
/// Barriers of all nodes; if `is_hidden`, also barriers behind computation. The place is the number of nodes, and where
/// they are.
int barrier_node(const std::string& place, bool is_hidden);
/// Two nodes. One computes, and the other sends it requests.
int answer_node(const std::string& place);
/// Two nodes that sleep without calling Kumi.
int idle_node(const std::string& place);
/// Laplace's equation by Jacobi's method: with communication before computation, and with both at the same time.
int jacobi_node();

} // namespace kumi::bench
