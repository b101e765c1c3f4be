#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kumi::bench {

/// One process of a contestant. `work` returns its exit code.
struct Part {
    std::function<int()> work;
    std::optional<unsigned> core = std::nullopt; // the core that the process is bound to
};

/// Runs each part in a process of its own. The first part measures; when it has ended, the others are ended, so their
/// work may be endless. If a part fails before, all are ended. Returns an exit code.
int run_parts(const std::vector<Part>& parts);

/// Replaces this process by another program. Returns only if that fails, with an exit code.
int become(const std::vector<std::string>& words);

} // namespace kumi::bench
