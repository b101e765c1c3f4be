#pragma once

// Starting one node's process.

#include "kumi/base/descriptor.hpp"
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
    std::vector<std::string> environment_added; // "NAME=value"
    std::optional<cpu_set_t> binding;
    base::Descriptor standard_input;
    base::Descriptor standard_output;
    base::Descriptor standard_error;
    base::Descriptor boot_socket; // passed on under the number that the environment names
};

/// Starts a process in a group of its own that is killed when this process ends.
Result<pid_t> start_process(const ProcessOptions& options);

} // namespace kumi::launch::host
