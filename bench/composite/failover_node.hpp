#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// A node of a job in the lab: node 0 sends, node 1 pulls its own cable out of the network that carries that, or lets
/// the network ignore it, and reports the longest pause that follows. `words`: "failover.carrier" or "failover.mute",
/// and the network.
int failover_node(std::span<const std::string> words);

} // namespace kumi::bench
