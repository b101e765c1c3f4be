#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Measures what calls cost as jobs grow: at one node whose job has up to 4,096 nodes that do not exist, and in jobs of
/// up to 512 processes on this machine.
Table run_scale_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> scale_rows();

/// Runs a node. `words`: "alone" and the nodes of the job, or "together". Returns an exit code.
int scale_node(std::span<const std::string> words);

} // namespace kumi::bench
