#pragma once

#include "udp/network.hpp"
#include "udp/task.hpp"

namespace kumi::bench {

/// Runs a contestant that uses bare sockets: the limits ("limit", UDP) and TCP in its variants ("tcp", ...).
/// Returns an exit code.
int run_bare(const Task& task, const Network& network);

} // namespace kumi::bench
