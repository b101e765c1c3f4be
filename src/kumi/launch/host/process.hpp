#pragma once

// Starting a process: a node, or what reaches another host.

#include "kumi/base/result.hpp"

#include <optional>
#include <sched.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace kumi::launch::host {

/// Finds what the user named, as a shell would, and checks that it can be run.
Result<std::string> find_program(const std::string& name);

struct ProcessOptions {
    std::string program;                // a path
    std::vector<std::string> arguments; // without the program's name
    std::vector<std::string> environment;
    std::optional<cpu_set_t> binding;
    std::vector<int> descriptors; // it gets them as its 0, 1, 2, ...; 8 at most
};

/// Starts a process in a group of its own that is killed when this process ends.
Result<pid_t> start_process(const ProcessOptions& options);

} // namespace kumi::launch::host
