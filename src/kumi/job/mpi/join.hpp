#pragma once

// Kumi inside a program that MPI has started, beside the program's own MPI calls. Link kumi::mpi.

#include "kumi/device/mpi/options.hpp"
#include "kumi/job/job.hpp"

#include <cstdint>
#include <mpi.h>
#include <optional>

namespace kumi::mpi {

struct Options {
    /// Ranks that gave the same number are near each other, and those of others further away: a multicast goes to each
    /// such cluster once. Hosts are found without it. All ranks give one, or none does.
    std::optional<std::uint32_t> cluster;
    /// What messages take is measured unless this says it, or `channel` does that time is not the clock's.
    group::Settings groups;
    device::mpi::Options channel;
};

/// Joins the job of all ranks of `comm`; a node has its rank's number. Collective: all ranks call it, and all leave, by
/// letting their Job end, before MPI_Finalize; device/mpi/mpi.hpp says how long leaving takes. `comm` is used for
/// nothing but to meet here, and may be freed. A process may be in several such jobs.
///
/// Threads. Kumi calls MPI when it is called, from the thread that does so. Where MPI_Init_thread gave
/// MPI_THREAD_MULTIPLE a thread in the background does too, while nobody else does; where it gave less, nothing is
/// handled unless the program waits or polls, and calls of Kumi are calls of MPI: only one at a time
/// (MPI_THREAD_SERIALIZED), or only from the main thread. There a node that waits inside MPI for others keeps those
/// waiting that wait for it in Kumi: meet in a barrier first.
Result<Job> join(MPI_Comm comm, Handlers&& handlers = {}, const Options& options = {});

} // namespace kumi::mpi
