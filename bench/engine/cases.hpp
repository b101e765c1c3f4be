#pragma once

#include "harness/job_bench.hpp"

namespace kumi::bench {

/// The cases of `kumi bench engine`. engine/node.hpp says what their nodes do.
std::vector<JobCase> engine_cases();

} // namespace kumi::bench
