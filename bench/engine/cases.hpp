#pragma once

#include "../table.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

/// Rows of `kumi bench engine` that one run of a contestant measures together.
struct EngineCase {
    std::string what;  // the nodes do: "pair", "barrier"; see engine/node.hpp
    std::string place; // "shmem", "udp"; for barriers their number of nodes, with ".lab" behind it or not
    int nodes;
    std::vector<RowKind> rows;

    std::string name() const { return what + "." + place; }
};

std::vector<EngineCase> engine_cases();

} // namespace kumi::bench
