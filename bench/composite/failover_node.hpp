#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// Runs a node of a job in a lab. Node 0 sends. Node 1 pulls its own cable out of the network that carries the
/// messages, or makes the network drop its packets, and reports the longest pause that follows. `words`:
/// "failover.carrier" or "failover.mute", and the network.
int failover_node(std::span<const std::string> words);

} // namespace kumi::bench
