#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kumi::bench {

struct BenchOptions {
    std::vector<std::string> peers;
    std::vector<std::string> rows = {}; // only those whose names begin so; none: all
    int rounds = 7;
    std::string kumi_path;                               // of the kumi command
    // of this program: `node_path node WORDS` is a node of a benchmark
    std::string node_path;
    std::string peers_folder;                            // where the peers' programs are
    std::string labs_folder;                             // where the cluster files of labs are
    std::string figures_folder = {};                     // where pictures go; empty: none are drawn
    std::string cluster_file = {};                       // of the hosts and networks that are soaked; empty: its own
    std::uint64_t seed = 0;                              // of what is done at random
    std::function<void(const std::string&)> on_progress; // what is being measured now
};

/// Whether that row was asked for: all are, when none was named.
inline bool is_asked_for(const BenchOptions& options, const std::string& row) {
    const auto names_it = [&](const std::string& start) { return row.starts_with(start); };
    return options.rows.empty() || std::any_of(options.rows.begin(), options.rows.end(), names_it);
}

} // namespace kumi::bench
