#pragma once

#include "simulated/machine.hpp"

#include <functional>
#include <string>

namespace kumi::bench {

/// Simulates a machine with one rank of MPI on every node. All ranks are in one thread of this process and take turns
/// when they wait in MPI. MPI_Wtime tells the simulated time. `bcast`: SimGrid's name of the algorithm of MPI_Bcast.
/// Does not return: some rank calls end().
[[noreturn]] void simulate(const Machine& machine, const std::string& bcast, const std::function<void(int rank)>& run);

/// This rank does nothing for that time.
void sleep(double seconds);

/// Ends the simulation and the process. No rank leaves MPI before, because that takes long and measures nothing.
[[noreturn]] void end();

/// Ends the simulation and the process as a failure, and says why.
[[noreturn]] void fail(const std::string& why);

} // namespace kumi::bench
