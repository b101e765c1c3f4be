#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// A node of a job in the lab: every node sends every other one numbered messages of all sizes until the file that `words`
/// names is there. Each reports, with its number behind the name, how many "messages" came and how many were "wrong": lost,
/// doubled, out of order or with other bytes in them; and its "failovers".
int soak_node(std::span<const std::string> words);

} // namespace kumi::bench
