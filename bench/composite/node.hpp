#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// Runs one contestant of `kumi bench composite`, with all its processes. Returns an exit code.
int composite_node(std::span<const std::string> words);

} // namespace kumi::bench
