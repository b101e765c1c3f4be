#pragma once

// Starts a process: a node, or the agent that reaches another host.

#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"

#include <optional>
#include <sched.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

/// Finds the program that the user named, as a shell would, and checks that it can be run.
Result<std::string> find_program(const std::string& name);

struct ProcessOptions {
    std::string program;                // a path
    std::vector<std::string> arguments; // without the program's name
    std::vector<std::string> environment;
    std::optional<cpu_set_t> binding;
    std::vector<int> descriptors; // it gets them as its 0, 1, 2, ...; 8 at most
    bool is_leashed = true; // false: the program ends by itself when this process does, after it has cleared up
};

/// A process that was started, in a group of its own.
struct Process {
    pid_t pid;
    /// The kernel kills the whole group when this is closed, and the end of this process closes it. So a group ends
    /// with its starter, though nobody is left to send a signal. It does not reach processes that have left the group,
    /// nor a group whose processes have all closed the descriptor that they inherited.
    base::Descriptor leash;
};

/// Starts a process. Unless it is not leashed, the kernel kills it when this process ends, and its group as well (see
/// Process::leash).
Result<Process> start_process(const ProcessOptions& options);

} // namespace kumi::launch::host
