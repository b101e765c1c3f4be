#pragma once

#include "simulated/machine.hpp"

#include <functional>
#include <string>

namespace kumi::bench {

/// Simulates a machine on every node of which a rank of MPI runs. All ranks are in this process and in one thread, and
/// take turns when they wait in MPI; time is that of MPI_Wtime. `bcast`: the algorithm of MPI_Bcast, as SimGrid names
/// it. Does not return: some rank calls end().
[[noreturn]] void simulate(const Machine& machine, const std::string& bcast, const std::function<void(int rank)>& run);

/// Nothing happens on this rank for so long.
void sleep(double seconds);

/// Ends the simulation, and the process. Nobody leaves before: that takes long, and shows nothing.
[[noreturn]] void end();

} // namespace kumi::bench
