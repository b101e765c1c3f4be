#pragma once

// How MPIs are started: on this machine, and on hosts of a lab.

#include "harness/options.hpp"
#include "harness/own_lab.hpp"
#include "harness/stage.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

/// The programs of these peers, where they were built; who has none is noted, and left out of the answer.
std::vector<std::string> peers_with_programs(const BenchOptions& options, Table& table);

/// Starts `nodes` processes of a peer's program here, bound to cores if there are enough.
Entry mpi_here(const BenchOptions& options, const std::string& peer, int nodes, bool bound,
               const std::vector<std::string>& words);

/// A run of an MPI program in a lab.
struct MpiRun {
    std::string hosts; // "a0:2,b0"
    std::string nodes;
    std::string interface;          // which it is told to use, when it is told
    std::vector<std::string> words; // of the program
};
Entry mpi_in_lab(const BenchOptions& options, const OwnLab& lab, const std::string& peer, const MpiRun& run,
                 bool is_told);

/// The same in each of several settings, which are environments: the best counts.
std::vector<Entry> in_settings(const Entry& entry, const std::vector<std::vector<std::string>>& settings);

/// With which a peer may wait when there are more processes than cores.
std::vector<std::vector<std::string>> waiting_settings(const std::string& peer);

/// Processes that wait for each other, in the settings of which one may be good for it: on this machine, or 12 in the
/// lab of figure 3.
std::vector<Entry> mpi_waiting(const BenchOptions& options, const OwnLab* lab, const std::string& peer, int nodes,
                               const std::vector<std::string>& words);

/// A peer that was told which network to use.
inline std::string told(const std::string& peer) { return peer + "_told"; }

} // namespace kumi::bench
