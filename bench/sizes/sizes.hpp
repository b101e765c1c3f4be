#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kumi::bench {

/// Measures latency and bandwidth of two nodes for messages of 8 B to 16 MiB, in shared memory and between two hosts.
Table run_sizes_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> sizes_rows();
std::span<const char* const> sizes_peers() noexcept;

/// Runs a node. `words`: "latency" or "bandwidth", and the place. Returns an exit code.
int sizes_node(std::span<const std::string> words);

/// From which size on messages have half of the greatest bandwidth of the `points`, which are sizes and bandwidths, by
/// size. Between two points the bandwidth grows as a power of the size. Requires that there are points.
double half_bandwidth_bytes(const std::vector<std::pair<double, double>>& points);

} // namespace kumi::bench
