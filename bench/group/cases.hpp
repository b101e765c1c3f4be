#pragma once

#include "harness/job_bench.hpp"

namespace kumi::bench {

/// The cases of `kumi bench group`. group/node.hpp says what their nodes do.
std::vector<JobCase> group_cases();

} // namespace kumi::bench
