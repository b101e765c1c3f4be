#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kumi::bench {

struct BenchOptions {
    std::vector<std::string> peers;
    std::vector<std::string> rows = {}; // only those whose names begin so; none: all
    int rounds = 7;
    std::string own_path;                                // of the kumi command, which is also every node
    std::string peers_folder;                            // where the peers' programs are
    std::function<void(const std::string&)> on_progress; // what is being measured now
};

} // namespace kumi::bench
