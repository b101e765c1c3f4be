#include "kumi/job/mpi/join.hpp"

#include "kumi/device/mpi/mpi.hpp"
#include "kumi/job/mpi/session.hpp"

namespace kumi::mpi {

Result<Job> join(MPI_Comm comm, Handlers&& handlers, const Options& options, group::Settings groups) {
    if (auto good = device::mpi::check(comm); !good) return good.error();
    auto session = open_session(comm);
    if (!session) return session.error();
    auto channel = device::mpi::open(comm, options);
    if (!channel) return channel.error();
    int threads = MPI_THREAD_SINGLE;
    MPI_Query_thread(&threads);
    if (options.sleeps_in_mpi && !groups.costs) groups.costs = group::Costs{};
    return Job::adopt(*std::move(session), *std::move(channel), std::move(handlers), threads == MPI_THREAD_MULTIPLE, groups);
}

} // namespace kumi::mpi
