#pragma once

#include <span>
#include <string>

namespace kumi::bench {

/// Runs one contestant of `kumi bench composite`, with all processes that it needs. Answers an exit code.
int composite_node(std::span<const std::string> words);

} // namespace kumi::bench
