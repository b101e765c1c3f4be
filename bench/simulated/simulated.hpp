#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Multicasts on simulated machines of hundreds and thousands of nodes, as the dynamic multicast paper measured them in
/// its figures 8 and 9, and MPI_Bcast beside them: simulated/contest.hpp says who does what. Times are those of the
/// simulation, the same in every run, so there is one round. With a folder for figures, it draws what the paper draws.
Table run_simulated_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> simulated_rows();
/// What `--against` may name.
std::span<const char* const> simulated_peers() noexcept;

} // namespace kumi::bench
