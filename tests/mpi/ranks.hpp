#pragma once

// Tests that run on all ranks of MPI_COMM_WORLD at once, with the same tests in the same order everywhere.

#include <functional>
#include <mpi.h>
#include <string>

namespace kumi::mpi_test {

int rank();

/// Runs `body` on the first `count` ranks, with a communicator of their own; the others wait, and need no core for it.
/// A failure on one of them is one on the first, too.
void on_first_ranks(int count, const std::function<void(MPI_Comm)>& body);

/// What joining says before MPI_Init.
const std::string& refusal_before_init();

} // namespace kumi::mpi_test
