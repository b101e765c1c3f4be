#pragma once

// Processes are found by a mark in their environment, in /proc.

#include <string_view>
#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

/// The numbers that are the names of a folder's entries: of processes, threads or descriptors.
std::vector<int> numbers_in(const char* folder);

/// Whether a process has the mark, "NAME=value", in its environment. A process that has ended has no environment.
bool is_marked(pid_t pid, std::string_view mark);

} // namespace kumi::launch::host
