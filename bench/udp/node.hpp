#pragma once

#include "udp/network.hpp"
#include "udp/task.hpp"

#include <span>
#include <string>

namespace kumi::bench {

/// Runs one contestant of `kumi bench udp`, with all its processes. Returns an exit code.
int udp_node(std::span<const std::string> words);

/// Runs Kumi; or "limit", in rows whose limit is a figure of Kumi itself. Returns an exit code.
int run_kumi(const Task& task, const Network& network);

} // namespace kumi::bench
