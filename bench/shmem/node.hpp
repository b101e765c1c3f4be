#pragma once

#include <string_view>

namespace kumi::bench {

/// Runs a node of `kumi bench shmem`: "pair" (two nodes), "ring", "join" or "idle"; or "limit", which is no node but
/// measures the limit of "pair" without Kumi. Returns an exit code.
int shmem_node(std::string_view what);

} // namespace kumi::bench
