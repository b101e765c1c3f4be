#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

namespace kumi::bench {

/// Measures Kumi over shared memory beside the limit and MPI. In each round the contestants take turns.
Table run_shmem_bench(const BenchOptions& options);

} // namespace kumi::bench
