#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// A node of a job in the lab: every node sends every other one numbered messages of all sizes until the file that
/// `words` names is there. Each reports, with its number behind the name, how many "messages" came and how many were
/// "wrong": lost, doubled, out of order or with other bytes in them; its "failovers"; and the longest "pause" between
/// two messages of one node, in seconds. Steady nodes send each other 50 messages in a second, others as many as they
/// can.
int soak_node(std::span<const std::string> words, bool is_steady);

} // namespace kumi::bench
