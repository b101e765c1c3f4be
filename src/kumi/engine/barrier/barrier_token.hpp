#pragma once

#include <cstdint>

namespace kumi {

/// One barrier that this node has arrived at.
struct BarrierToken {
    std::uint64_t set = 0; // whose barrier: 0 for all nodes
    std::uint32_t sequence = 0; // among those of its set
};

} // namespace kumi
