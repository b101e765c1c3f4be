#pragma once

// Kumi inside a program that MPI has started, beside the program's own MPI calls. Link kumi::mpi.

#include "kumi/device/mpi/options.hpp"
#include "kumi/job/job.hpp"

#include <mpi.h>

namespace kumi::mpi {

using device::mpi::Options;

/// Joins the job of all ranks of `comm`; a node has its rank's number. Collective: all ranks call it, and all leave, by letting
/// their Job end, before MPI_Finalize; device/mpi/mpi.hpp says how long leaving takes. `comm` is used for nothing but to meet here,
/// and may be freed. A process may be in several such jobs.
///
/// Threads. Kumi calls MPI when it is called, from the thread that does so. Where MPI_Init_thread gave MPI_THREAD_MULTIPLE a
/// thread in the background does too, while nobody else does; where it gave less, nothing is handled unless the program
/// waits or polls, and calls of Kumi are calls of MPI: only one at a time (MPI_THREAD_SERIALIZED), or only from the main thread.
/// There a node that waits inside MPI for others keeps those waiting that wait for it in Kumi: meet in a barrier first.
///
/// Groups. Nodes measure what messages take unless `groups` says it, or Options::sleeps_in_mpi does that time is not the clock's.
Result<Job> join(MPI_Comm comm, Handlers&& handlers = {}, const Options& options = {}, group::Settings groups = {});

} // namespace kumi::mpi
