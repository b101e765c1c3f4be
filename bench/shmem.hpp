#pragma once

#include "options.hpp"
#include "table.hpp"

namespace kumi::bench {

/// Kumi over shared memory beside the limit and MPI, interleaved round by round.
Table run_shmem_bench(const BenchOptions& options);

} // namespace kumi::bench
