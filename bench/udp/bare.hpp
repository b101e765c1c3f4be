#pragma once

#include "udp/network.hpp"
#include "udp/task.hpp"

namespace kumi::bench {

/// The contestants that are nothing but sockets: the limits ("limit", UDP) and TCP in its variants ("tcp", ...).
/// Answers an exit code.
int run_bare(const Task& task, const Network& network);

} // namespace kumi::bench
