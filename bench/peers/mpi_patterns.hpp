#pragma once

#include <string>

namespace kumi::bench {

/// The cases of bench/patterns, but for barriers: "pairs", "pingpongs", "incast", "placement" or "multicasts". Returns
/// an exit code.
int mpi_patterns(const std::string& what, const std::string& place);

} // namespace kumi::bench
