#pragma once

// Command lines that start MPI programs, on this machine and on hosts of a lab.

#include "harness/lab/own_lab.hpp"
#include "harness/options.hpp"
#include "harness/stage.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

/// The peers of `options` whose programs were built. The others are noted in the table.
std::vector<std::string> peers_with_programs(const BenchOptions& options, Table& table);

/// Starts `nodes` processes of a peer's program on this machine; `bound`: each process is bound to a core.
Entry mpi_here(const BenchOptions& options, const std::string& peer, int nodes, bool bound,
               const std::vector<std::string>& words);

/// A run of an MPI program in a lab.
struct MpiRun {
    std::string hosts; // "a0:2,b0"
    std::string nodes;
    std::string interface;          // the one that MPI uses if it is told
    std::vector<std::string> words; // of the program
};
Entry mpi_in_lab(const BenchOptions& options, const OwnLab& lab, const std::string& peer, const MpiRun& run,
                 bool is_told);

/// One entry for each setting, which is an environment. Of their results the best counts.
std::vector<Entry> in_settings(const Entry& entry, const std::vector<std::vector<std::string>>& settings);

/// Settings for the way a peer waits when there are more processes than cores.
std::vector<std::vector<std::string>> waiting_settings(const std::string& peer);

/// Hosts of the lab of figure 3 and the number of nodes that each may have; all hosts unless told.
struct LabHosts {
    std::string list = "a0:2,a1:2,a2:2,a3:2,b0,b1,b2,b3";
    std::string interface = "lan"; // of a network that joins them
};

/// Four nodes in the lab of figure 3, on hosts that the same network joins.
struct Seating {
    const char* place;
    int hosts;
    const char* list;
    const char* text;

    LabHosts lab_hosts() const { return {list, "myrinet"}; }
};
inline constexpr Seating seatings[] = {{"4x1.lab", 4, "a0,a1,a2,a3", "one on each of 4 hosts"},
                                       {"2x2.lab", 2, "a0:2,a1:2", "two on each of 2 hosts"},
                                       {"1x4.lab", 1, "a0:4", "all on one host"}};

/// Processes that wait for each other, in each of the waiting settings: on this machine, or in the lab of figure 3.
std::vector<Entry> mpi_waiting(const BenchOptions& options, const OwnLab* lab, const std::string& peer, int nodes,
                               const std::vector<std::string>& words, const LabHosts& hosts = {});

/// The name of a peer that is told which network to use.
inline std::string told(const std::string& peer) { return peer + "_told"; }

} // namespace kumi::bench
