#pragma once

#include "udp/network.hpp"
#include "udp/task.hpp"

#include <span>
#include <string>

namespace kumi::bench {

/// Runs one contestant of `kumi bench udp`, with all processes that it needs. Answers an exit code.
int udp_node(std::span<const std::string> words);

/// Kumi itself; "limit" where the limit is Kumi's own figure. Answers an exit code.
int run_kumi(const Task& task, const Network& network);

} // namespace kumi::bench
