#pragma once

#include "kumi/base/result.hpp"
#include "kumi/device/mpi/options.hpp"
#include "kumi/pm/channel.hpp"

#include <memory>
#include <mpi.h>

namespace kumi::device::mpi {

/// Checks that a channel can be opened over `comm`: MPI is running, and `comm` is a communicator of one group. The
/// other nodes may find nothing wrong and wait for this node, as in any collective call that not all nodes make.
Result<void> check(MPI_Comm comm);

/// Opens this node's end of a channel between the ranks of `comm`, over MPI's messages. Collective: all ranks must call
/// it. Messages use a duplicate of `comm`, so they never meet messages of the program. MPI errors on it end the
/// program.
///
/// All nodes must close the channel before MPI_Finalize, in any order. A node that closes waits up to 10 s until
/// everything it sent has left, and up to 2 s for the other nodes. If they stay longer, MPI_Finalize does the rest; it
/// waits for the others anyway.
Result<std::unique_ptr<pm::Channel>> open(MPI_Comm comm, const Options& options = {});

} // namespace kumi::device::mpi
