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

/// A multicast by Kumi, on whose nodes nobody knew of the set before. `way`: "" is the best, "paper" what the paper
/// does.
[[noreturn]] void multicast_by_kumi(const Contest& contest, const std::string& way);
/// The same from a node that is no member: until it may go on.
[[noreturn]] void call_by_kumi(const Contest& contest);
/// MPI_Bcast by the algorithm that MPICH takes. The communicator is there already, and all members wait in it; or it is
/// made for this by all of them, who know that and wait for it.
[[noreturn]] void broadcast_by_mpi(const Contest& contest, bool creates);

} // namespace kumi::bench
