#pragma once

#include "udp/network.hpp"
#include "udp/task.hpp"

namespace kumi::bench {

/// Runs a peer: iperf3, or a program that uses Open MPI, ENet or ZeroMQ. Returns an exit code.
int run_foreign(const Task& task, const Network& network);

} // namespace kumi::bench
