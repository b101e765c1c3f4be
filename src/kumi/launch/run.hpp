#pragma once

// One job, from start to end.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kumi::launch {

struct RunOptions {
    std::uint32_t nodes = 1;
    std::string program;
    std::vector<std::string> arguments;
    std::vector<std::string> environment_added; // "NAME=value", for every node
    std::optional<std::string> hosts; // "a,b:2": where nodes run, and how many may
    std::string cluster_file;         // says so too, and describes networks; empty: none
    std::string place;                // how nodes are seated on hosts; empty: packed
    std::string rsh;                  // what reaches other hosts, with blanks between its words; empty: ssh
    bool label = false;         // each line of output starts with its node's number
    bool bind = true;           // a core for each node, where there are enough
    bool must_join = true;      // a program that never joins is an error
    bool show_traffic = false;  // at the end: who sent how much to whom, over what
    bool show_stats = false;    // at the end: what the nodes counted
    std::chrono::seconds start_max{30}; // until all hosts have started their nodes; 0: no limit
    std::chrono::seconds join_max{60};  // until all nodes have joined; 0: no limit
    std::string version;                // of this Kumi, which other hosts must have too
};

/// Starts the nodes, brings them together, watches them, ends them. Answers the exit code: 0, that of the first
/// failure, 128 + the signal that killed a node or that we were sent; 1 for what went wrong here. Everything that the
/// user must know has been printed.
int run(const RunOptions& options);

} // namespace kumi::launch
