#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kumi::bench {

/// What one process of a contestant does; answers its exit code.
struct Part {
    std::function<int()> work;
    std::optional<unsigned> core = std::nullopt; // bound to it
};

/// Runs each part as a process of its own until the first one, which measures, has ended; then ends the others, so
/// they may go on for ever. A part that fails before ends them all. Answers an exit code.
int run_parts(const std::vector<Part>& parts);

/// Becomes another program; comes back only when that fails, with an exit code.
int become(const std::vector<std::string>& words);

} // namespace kumi::bench
