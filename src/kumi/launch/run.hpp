#pragma once

// `kumi run`: one job at a terminal, from start to end. Joins a JobRun, which has no terminal, and a Console.

#include "kumi/launch/job_options.hpp"

#include <functional>
#include <string>

namespace kumi::launch {

class JobRun;

struct RunOptions {
    JobOptions job;
    bool label = false; // each line of output starts with its node's number
};

/// Makes the text that is printed to standard output when the job has ended, after all that its nodes printed.
using Report = std::function<std::string(const JobRun&)>;

/// Starts the nodes, brings them together, watches them, ends them. Answers the exit code: 0; that of the first node
/// that failed; 128 + the signal that killed a node or that this process got; 1 for any other failure. Everything that
/// the user must know has been printed.
int run(const RunOptions& options, const Report& report = {});

} // namespace kumi::launch
