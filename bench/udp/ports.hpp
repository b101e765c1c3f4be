#pragma once

#include "udp/task.hpp"

#include <cstddef>
#include <sys/types.h>
#include <vector>

namespace kumi::bench {

/// A node of a job whose node 0 counts the UDP sockets that all of them have open. Answers an exit code.
int count_ports(const Task& task);

/// How many UDP sockets these processes have open together; one that several of them hold counts once.
std::size_t udp_sockets_of(const std::vector<pid_t>& processes);

} // namespace kumi::bench
