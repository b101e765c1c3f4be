#pragma once

// A broadcast of n blocks in the fewest rounds that there can be, n - 1 + log2 p (rounded up), for every number of
// members p (Träff). In each round each member sends one block and receives one. All know their part from p and their
// rank alone.
//
// In round i, with k = i mod q and q = ceil(log2 p), rank r sends to r + skip[k] and receives from r - skip[k] (modulo
// p). The schedules of a rank have q entries each, one per k; in later rounds the same entry stands for a block that is
// q further, every time round. Entries below zero stand for no block yet; those past the last block stand for the last
// one. Rank 0 has all blocks and receives nothing.

#include "kumi/pm/node.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::group {

using pm::Node;

class Circulant {
public:
    Circulant(Node members, Node rank);

    /// What happens in one round; without a block, nothing is sent or received.
    struct Step {
        Node to = 0;                          // rank
        Node from = 0;                        // rank
        std::optional<std::uint32_t> send;    // block
        std::optional<std::uint32_t> receive; // block
    };
    /// Rounds for that many blocks.
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
