#pragma once

#include "harness/progress.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kumi::bench {

struct BenchOptions {
    std::vector<std::string> peers;
    std::vector<std::string> rows = {}; // measure only rows whose names begin so; empty: all
    int rounds = 7;
    std::string kumi_path;           // the kumi command
    std::string node_path;           // this program: `node_path node WORDS` is a node of a benchmark
    std::string peers_folder;        // where the programs of peers are
    std::string labs_folder;         // where the cluster files of labs are
    std::string figures_folder = {}; // where figures are written; empty: none are drawn
    std::string cluster_file = {};   // the hosts and networks of composite.soak and composite.steady; empty: their own
    std::uint64_t seed = 0;          // of random faults
    std::function<void(const Step&)> on_progress; // is told what is being measured
};

/// Whether `row` is to be measured. All rows are if the options name none.
inline bool is_asked_for(const BenchOptions& options, const std::string& row) {
    const auto names_it = [&](const std::string& start) { return row.starts_with(start); };
    return options.rows.empty() || std::any_of(options.rows.begin(), options.rows.end(), names_it);
}

} // namespace kumi::bench
