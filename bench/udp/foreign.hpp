#pragma once

#include "udp/network.hpp"
#include "udp/task.hpp"

namespace kumi::bench {

/// The peers that are programs of others, or written with their libraries: iperf3, openmpi, enet, zeromq.
/// Answers an exit code.
int run_foreign(const Task& task, const Network& network);

} // namespace kumi::bench
