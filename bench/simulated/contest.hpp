#pragma once

#include "simulated/machine.hpp"
#include "simulated/paper.hpp"

#include <cstddef>

namespace kumi::bench {

/// One message to some nodes of a machine, from the first of them.
struct Contest {
    Machine machine;
    std::size_t bytes;
    int members; // evenly spread over the machine
};

/// A multicast by Kumi to a set that is new to all nodes.
[[noreturn]] void multicast_by_kumi(const Contest& contest);
/// The same by the paper's algorithm, or by the one that the paper plans.
[[noreturn]] void multicast_by_paper(const Contest& contest, Allgather allgather);
/// The time of the call of such a multicast, at a node that is no member.
[[noreturn]] void call_by_kumi(const Contest& contest);

enum class Broadcast {
    mpich,  // by the algorithm that MPICH uses for this size; all members wait in a communicator that exists already
    tree,   // the same, but whole messages down a binomial tree for every size
    create, // as MPICH; all members, which know of it and wait, make the communicator for this broadcast
};
[[noreturn]] void broadcast_by_mpi(const Contest& contest, Broadcast broadcast);

} // namespace kumi::bench
