#pragma once

#include "network.hpp"
#include "task.hpp"

#include <span>
#include <string>

namespace kumi::bench {

/// Runs one contestant of `kumi bench udp`, with all processes that it needs. Answers an exit code.
int udp_node(std::span<const std::string> words);

/// Kumi itself; "limit" where the limit is Kumi's own figure. Answers an exit code.
int run_kumi(const Task& task, const Network& network);

/// A node of a job whose node 0 counts the UDP sockets that all of them have open. Answers an exit code.
int count_ports(const Task& task);

} // namespace kumi::bench
