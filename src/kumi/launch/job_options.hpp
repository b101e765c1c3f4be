#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/ioctl.h>
#include <vector>

namespace kumi::launch {

/// What a job runs, where, and how long its start may take. Nodes on this host start in the working folder of this
/// process, and with its environment.
struct JobOptions {
    std::uint32_t nodes = 1;
    std::string program;
    std::vector<std::string> arguments;
    std::vector<std::string> environment_added; // "NAME=value", for every node
    std::optional<std::string> hosts;           // "a,b:2": where nodes run, and how many at most
    std::string cluster_file; // names the hosts instead, or describes the networks of those in `hosts`; empty: none
    std::string place;        // how nodes are placed on hosts; empty: packed
    std::string rsh;          // the command that reaches other hosts, with blanks between its words; empty: ssh
    std::string version;      // of this Kumi; other hosts must have the same
    bool bind = true;         // a core for each node, where enough are free
    bool must_join = true;    // a program that never joins is an error
    bool mpi_over_kumi = false; // Open MPI talks over Kumi instead of its own networks
    bool report_traffic = false; // nodes report on leaving how much they sent to each other
    bool report_stats = false;   // nodes report on leaving what they counted
    bool owns_process = false; // all children of this process belong to this job: see host::Orphans
    std::optional<winsize> terminal; // size of the terminal that shows the output; none: the output goes elsewhere
    std::chrono::seconds start_max{30}; // until all hosts have started their nodes; 0: no limit
    std::chrono::seconds join_max{60};  // until all nodes have joined; 0: no limit
    std::chrono::seconds run_max{0};    // until the job has ended; 0: no limit
};

} // namespace kumi::launch
