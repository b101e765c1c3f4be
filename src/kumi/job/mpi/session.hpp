#pragma once

#include "kumi/boot/session.hpp"

#include <memory>
#include <mpi.h>

namespace kumi::mpi {

/// The ranks of a communicator as the nodes of a job. They meet by MPI's collective calls, which have no deadline;
/// `comm` must last until they have.
Result<std::unique_ptr<boot::Session>> open_session(MPI_Comm comm);

} // namespace kumi::mpi
