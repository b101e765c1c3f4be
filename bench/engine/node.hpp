#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// A node of `kumi bench engine`: what it does, and at which place. Answers an exit code.
int engine_node(std::span<const std::string> words);

// What nodes do. Node 0 reports rows, whose names end with the place.

/// Two nodes: active messages and remote memory.
int pair_node(const std::string& place);
/// Two nodes that do the same as directly as it can be done: PM's messages, copies by memcpy.
int limit_node(const std::string& place);
/// Barriers of all nodes; also, if it is to be hidden, with something to do meanwhile. The place is the number of
/// nodes, and where they are.
int barrier_node(const std::string& place, bool is_hidden);
/// Two nodes, one of which computes and is asked all the same.
int answer_node(const std::string& place);
/// Two nodes that sleep, and do not know of Kumi meanwhile.
int idle_node(const std::string& place);
/// Laplace's equation by Jacobi's method, with communication before computation and at the same time.
int jacobi_node();

} // namespace kumi::bench
