#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// Runs a node of a job in a lab. Every node sends every other node numbered messages of all sizes until the file that
/// `words` names exists. Steady nodes send 50 messages a second to each, others as many as they can.
///
/// Each node reports these rows, whose names end with its number: "messages", how many came; "wrong", how many were
/// lost, doubled, out of order or had other bytes; "failovers"; "pause", the longest time between two messages of one
/// node, in seconds.
int soak_node(std::span<const std::string> words, bool is_steady);

} // namespace kumi::bench
