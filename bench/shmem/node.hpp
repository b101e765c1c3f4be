#pragma once

#include <string_view>

namespace kumi::bench {

/// What a node of a benchmark job does: "pair" (two nodes), "ring", "join", "idle"; or "limit", which is no node but
/// the physical limit of "pair", with nothing of Kumi in it. Answers an exit code.
int shmem_node(std::string_view what);

} // namespace kumi::bench
