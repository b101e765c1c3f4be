#pragma once

#include "harness/job_bench.hpp"

namespace kumi::bench {

/// What their nodes do is in engine/node.hpp.
std::vector<JobCase> engine_cases();

} // namespace kumi::bench
