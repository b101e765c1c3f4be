#pragma once

#include "harness/job_bench.hpp"
#include "harness/mpi.hpp"

#include <vector>

namespace kumi::bench {

inline constexpr int pairs_at_once[] = {1, 2, 4};
inline constexpr int incast_senders[] = {1, 2};
inline constexpr const char* incast_places[] = {"shmem", "lab"};
inline constexpr int barrier_nodes[] = {2, 4, 8, 16};
inline constexpr int masters_at_once[] = {1, 2, 4};

/// The cases of `kumi bench patterns`. patterns/node.hpp says what their nodes do.
std::vector<JobCase> patterns_cases();

/// The hosts that have the nodes of a case in a lab.
LabHosts patterns_hosts_of(const JobCase& one);

} // namespace kumi::bench
