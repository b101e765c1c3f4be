#pragma once

// Scatter and allgather: first each rank gets its part of the blocks, down a binomial tree (after Nagamine, Fukuma and
// Mori, as MPICH has it for long messages), then all pass parts on until each has all. Of p parts, part i is the blocks
// from i * blocks / p on; some may be empty. Rank 0 has all blocks. All know what they send from p, their rank and the
// number of blocks alone, and nobody is sent a block twice: what a rank has had in the scatter it is not sent again.

#include "kumi/pm/node.hpp"

#include <cstdint>
#include <vector>

namespace kumi::group {

using pm::Node;

/// Blocks from `begin` to before `end` go to a rank, when all of them are here and all that is to be sent before is
/// sent.
struct Passing {
    Node to = 0; // rank
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    friend bool operator==(const Passing&, const Passing&) = default;
};

/// What a rank sends. Parts go round: each rank sends the next one what it got from the one before. p - 1 rounds.
std::vector<Passing> scatter_ring(Node members, Node rank, std::uint32_t blocks);
/// What a rank has doubles in each round: log2 p rounds (rounded up), for every number of members.
std::vector<Passing> scatter_doubling(Node members, Node rank, std::uint32_t blocks);

} // namespace kumi::group
