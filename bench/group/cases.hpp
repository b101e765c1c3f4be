#pragma once

#include "harness/job_bench.hpp"
#include "harness/mpi.hpp"

namespace kumi::bench {

/// The cases of `kumi bench group`. group/node.hpp says what their nodes do.
std::vector<JobCase> group_cases();

/// The hosts that have the nodes of a case in a lab.
LabHosts lab_hosts_of(const JobCase& one);

} // namespace kumi::bench
