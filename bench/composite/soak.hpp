#pragma once

#include "harness/lab/own_lab.hpp"
#include "harness/progress.hpp"

#include "kumi/base/result.hpp"
#include "kumi/cluster/cluster.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kumi::bench {

inline constexpr unsigned soak_cycles = 1000;

struct Soaked {
    unsigned cycles = 0;
    double messages = 0;
    double wrong = 0; // messages of these that were wrong
    double failovers = 0;
    double longest_pause = 0; // seconds between two messages from one node to another
};

/// Runs `job`, whose nodes send each other messages, while links go down and up and hosts are muted at random. Equal
/// seeds give equal faults in the same order, though not at the same instants. `cluster`: the cluster file of the lab.
Result<Soaked> soak(const OwnLab& lab, const cluster::Cluster& cluster, const std::vector<std::string>& job,
                    std::uint64_t seed, const std::function<void(const Step&)>& on_progress);

} // namespace kumi::bench
