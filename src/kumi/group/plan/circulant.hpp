#pragma once

// A broadcast of n blocks among p members in the minimum number of rounds, n - 1 + ceil(log2 p), for every p (Träff).
// In each round each member sends one block and receives one. A member computes its part from p and its rank alone.
//
// In round i, with k = i mod q and q = ceil(log2 p), rank r sends to r + skip[k] and receives from r - skip[k] (modulo
// p). The schedules of a rank have q entries each, one per k; every q rounds the same entry stands for the block that
// is q further. A negative entry stands for no block yet; an entry past the last block stands for the last block. Rank
// 0 has all blocks and receives nothing.

#include "kumi/pm/node.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::group {

using pm::Node;

class Circulant {
public:
    Circulant(Node members, Node rank);

    /// What a rank does in one round. Without a block nothing is sent or received.
    struct Step {
        Node to = 0;                          // rank
        Node from = 0;                        // rank
        std::optional<std::uint32_t> send;    // block
        std::optional<std::uint32_t> receive; // block
    };
    /// The number of rounds for so many blocks.
    std::uint32_t rounds(std::uint32_t blocks) const noexcept {
        return blocks == 0 || members_ < 2 ? 0 : blocks - 1 + log2_;
    }
    Step step(std::uint32_t round, std::uint32_t blocks) const noexcept;

private:
    Node members_;
    Node rank_;
    std::uint32_t log2_; // of members, rounded up
    std::vector<Node> skips_;
    std::vector<std::int32_t> receives_;
    std::vector<std::int32_t> sends_;
};

} // namespace kumi::group
