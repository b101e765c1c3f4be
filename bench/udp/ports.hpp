#pragma once

#include "udp/task.hpp"

#include <cstddef>
#include <sys/types.h>
#include <vector>

namespace kumi::bench {

/// Runs a node of a job. Node 0 counts the open UDP sockets of all nodes. Returns an exit code.
int count_ports(const Task& task);

/// The number of UDP sockets that these processes have open. A socket of several processes counts once.
std::size_t udp_sockets_of(const std::vector<pid_t>& processes);

} // namespace kumi::bench
