#pragma once

// Command lines of jobs whose nodes are benchmarks: `kumi run OPTIONS kumi-bench node WORDS`.

#include "harness/lab/own_lab.hpp"
#include "harness/options.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

/// A job on this machine.
std::vector<std::string> job_here(const BenchOptions& options, const std::vector<std::string>& run_options,
                                  const std::vector<std::string>& words);

/// A job on the hosts of `cluster_file`, started at the front end of a lab.
std::vector<std::string> job_in_lab(const BenchOptions& options, const OwnLab& lab, const std::string& cluster_file,
                                    const std::vector<std::string>& run_options, const std::vector<std::string>& words);

} // namespace kumi::bench
