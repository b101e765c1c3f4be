#pragma once

#include "harness/job_bench.hpp"

namespace kumi::bench {

/// What their nodes do is in group/node.hpp.
std::vector<JobCase> group_cases();

} // namespace kumi::bench
