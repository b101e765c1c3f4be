#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Measures multicasts on simulated machines of hundreds and thousands of nodes, as in figures 8 and 9 of the dynamic
/// multicast paper, beside MPI_Bcast; simulated/contest.hpp describes the contestants. Times are simulated and equal in
/// every run, so there is one round. If the options name a folder for figures, draws the figures of the paper.
Table run_simulated_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> simulated_rows();
/// What `--against` may name.
std::span<const char* const> simulated_peers() noexcept;

} // namespace kumi::bench
