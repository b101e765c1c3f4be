#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

namespace kumi::bench {

/// Kumi over shared memory beside the limit and MPI, interleaved round by round.
Table run_shmem_bench(const BenchOptions& options);

} // namespace kumi::bench
