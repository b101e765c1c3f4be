#pragma once

#include "kumi/base/result.hpp"
#include "kumi/device/mpi/options.hpp"
#include "kumi/pm/channel.hpp"

#include <memory>
#include <mpi.h>

namespace kumi::device::mpi {

/// Why no channel can be opened over it: MPI is not running, or this is no communicator of one group. The others may
/// find nothing wrong and wait for this node, as with any collective call that not all make.
Result<void> check(MPI_Comm comm);

/// Opens this node's end of a channel that joins the ranks of `comm`, by MPI's own messages. Collective: all ranks call
/// it. Messages travel on a duplicate of `comm`, so they never meet others that the program sends; errors on it end the
/// program.
///
/// The channel must be closed before MPI_Finalize, and all nodes close theirs, in any order. Who closes waits up to 10
/// s until what it sent has gone, and up to 2 s for the others; where they stay longer MPI_Finalize does the rest,
/// which waits for the others anyway.
Result<std::unique_ptr<pm::Channel>> open(MPI_Comm comm, const Options& options = {});

} // namespace kumi::device::mpi
