#pragma once

// Scatter and allgather: first each rank gets its part of the blocks down a binomial tree (after Nagamine, Fukuma and
// Mori, as MPICH does for long messages), then the ranks pass parts on until each has all. Of p parts, part i begins at
// block i * blocks / p; a part may be empty. Rank 0 has all blocks. A rank computes what it sends from p, its rank and
// the number of blocks alone. No rank is sent a block twice: the allgather leaves out what a rank got in the scatter.

#include "kumi/pm/node.hpp"

#include <cstdint>
#include <vector>

namespace kumi::group {

using pm::Node;

/// Blocks from `begin` to before `end` go to a rank, as soon as all of them are here and all earlier passings are sent.
struct Passing {
    Node to = 0; // rank
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    friend bool operator==(const Passing&, const Passing&) = default;
};

/// What a rank sends when parts go around a ring: each rank sends the next rank what it got from the previous one. p -
/// 1 rounds.
std::vector<Passing> scatter_ring(Node members, Node rank, std::uint32_t blocks);
/// What a rank sends when the parts that each rank has double in each round: ceil(log2 p) rounds, for every p.
std::vector<Passing> scatter_doubling(Node members, Node rank, std::uint32_t blocks);

} // namespace kumi::group
