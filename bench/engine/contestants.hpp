#pragma once

#include "harness/job_bench.hpp"

namespace kumi::bench {

std::string engine_lab_file(const JobCase& one);
std::vector<Entry> engine_contestants(const BenchOptions& options, const JobCase& one, const OwnLab* lab);

} // namespace kumi::bench
