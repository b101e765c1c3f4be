#pragma once

#include "simulated/machine.hpp"

#include <cstddef>
#include <string>

namespace kumi::bench {

/// One message to some nodes of a machine, from the first of them.
struct Contest {
    Machine machine;
    std::size_t bytes;
    int members; // evenly spread over the machine
};

/// A multicast by Kumi to a set that is new to all nodes. `way`: "" is the best way, "paper" the way of the paper.
[[noreturn]] void multicast_by_kumi(const Contest& contest, const std::string& way);
/// The time of the call of such a multicast, at a node that is no member.
[[noreturn]] void call_by_kumi(const Contest& contest);
/// MPI_Bcast by the algorithm that MPICH uses. Either the communicator exists already and all members wait in it; or
/// all members, which know of it and wait, make the communicator for this broadcast.
[[noreturn]] void broadcast_by_mpi(const Contest& contest, bool creates);

} // namespace kumi::bench
