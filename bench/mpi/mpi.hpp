#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

std::span<const char* const> mpi_peers();
std::vector<std::string> mpi_rows();

/// Measures programs of other MPIs under `kumi run`, beside the same programs under the launchers of those MPIs.
Table run_mpi_bench(const BenchOptions& options);

} // namespace kumi::bench
