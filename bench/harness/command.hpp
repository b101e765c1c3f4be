#pragma once

// Runs one contestant and collects its results.

#include "kumi/base/result.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace kumi::bench {

struct Heard {
    std::map<std::string, double> results; // by row id
    double seconds = 0;                    // how long the command took
};

/// Runs a command to its end and returns what it printed. An error if the command fails, cannot be started, or takes
/// longer than `seconds_max`.
Result<std::string> output_of(const std::vector<std::string>& words, const std::vector<std::string>& environment_added,
                              std::chrono::seconds seconds_max);

/// Runs a command to its end and collects its "result ID VALUE" lines.
Result<Heard> run_contestant(const std::vector<std::string>& words, const std::vector<std::string>& environment_added,
                             std::chrono::seconds seconds_max);

} // namespace kumi::bench
