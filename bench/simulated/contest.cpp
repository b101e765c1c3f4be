#include "simulated/contest.hpp"

#include "contestant/measure.hpp"
#include "contestant/work.hpp"
#include "simulated/arrivals.hpp"
#include "simulated/simulation.hpp"

#include "kumi/mpi.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fmt/format.h>
#include <mpi.h>
#include <vector>

namespace kumi::bench {
namespace {

/// Seconds after which earlier traffic is over.
constexpr double quiet = 1e-3;
/// The largest message that the simulated MPI sends eagerly, less what SimGrid adds.
constexpr std::size_t at_once_bytes = 8960;
/// The costs of simulation.cpp, given to Kumi as settings.
constexpr const char* costs = "overhead=0.2,latency=1.2,bandwidth=10000";

/// Returns the time, once earlier traffic is over.
double begin() {
    sleep(quiet);
    return MPI_Wtime();
}

[[noreturn]] void end_with(const char* what, const Contest& contest, double seconds) {
    report(fmt::format("simulated.{}.{}.{}.{}", what, contest.machine.name, contest.bytes, contest.members).c_str(),
           seconds * 1e6);
    end();
}

/// Reports no time if not all members got the content.
[[noreturn]] void end_with(const char* what, const Contest& contest, const Arrivals& arrivals) {
    if (const auto mistake = arrivals.mistake()) fail(*mistake);
    end_with(what, contest, arrivals.seconds());
}

Node member(const Contest& contest, int index) {
    return static_cast<Node>(std::int64_t{contest.machine.member_nodes()} * index / contest.members);
}

Set members_of(const Contest& contest) {
    Set set;
    for (int i = 0; i < contest.members; ++i) set.add(member(contest, i));
    return set;
}

Arrivals arrivals_of(const Contest& contest) { return {contest.bytes, members_of(contest)}; }

Job join(const Contest& contest, Handlers&& handlers, int rank) {
    mpi::Options options;
    options.channel.sleeps_in_mpi = true;
    options.channel.packet_bytes = at_once_bytes;
    options.channel.receives = 4; // with more, the simulation takes longer
    if (contest.machine.groups > 1) options.cluster = static_cast<std::uint32_t>(rank / contest.machine.nodes_in_group);
    return must(mpi::join(MPI_COMM_WORLD, std::move(handlers), options));
}

/// SimGrid's name of an algorithm: for MPICH, of the one that MPICH 3 and 4 choose by default.
std::string algorithm_of(Broadcast broadcast, const Contest& contest) {
    if (broadcast == Broadcast::tree || contest.bytes <= 12288 || contest.members < 8) return "binomial_tree";
    return contest.bytes <= 524288 && std::has_single_bit(static_cast<unsigned>(contest.members))
               ? "scatter_rdb_allgather"
               : "scatter_LR_allgather";
}

const char* name_of(Broadcast broadcast) {
    switch (broadcast) {
    case Broadcast::mpich: return "bcast";
    case Broadcast::tree: return "tree";
    case Broadcast::create: return "create";
    }
    return "";
}

/// SimGrid makes communicators without messages. In MPICH the members first agree on a free number: a reduction of one
/// bit for each number.
void agree_on_number(MPI_Comm members) {
    std::array<std::uint32_t, 65> free{}, all{};
    MPI_Allreduce(free.data(), all.data(), static_cast<int>(free.size()), MPI_UINT32_T, MPI_BAND, members);
}

} // namespace

void multicast_by_kumi(const Contest& contest) {
    ::setenv("KUMI_GROUPS", costs, 1);
    Arrivals arrivals = arrivals_of(contest);
    simulate(contest.machine, "binomial_tree", [&](int rank) {
        Handlers handlers;
        const auto take = handlers.add("take", [&arrivals, rank](Call&, Bytes bytes) {
            arrivals.take(static_cast<Node>(rank), bytes, MPI_Wtime());
        });
        Job job = join(contest, std::move(handlers), rank);
        must(job.barrier());
        if (rank == 0) {
            arrivals.begin(begin());
            must(job.multicast(arrivals.members(), take, arrivals.content()).get());
            end_with("multicast", contest, arrivals);
        }
        must(job.barrier()); // this rank waits here
    });
}

void multicast_by_paper(const Contest& contest, Allgather allgather) {
    Arrivals arrivals = arrivals_of(contest);
    simulate(contest.machine, "binomial_tree", [&](int rank) {
        MPI_Comm all = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &all); // SimGrid cannot receive from any rank of MPI_COMM_WORLD itself
        MPI_Barrier(all);
        if (rank == 0) arrivals.begin(begin());
        // All others wait here, those that are no members for ever.
        PaperMulticast multicast = rank == 0 ? PaperMulticast(all, arrivals.members(), arrivals.content(), allgather)
                                             : PaperMulticast(all, contest.bytes, allgather);
        const Bytes content = multicast.deliver();
        arrivals.take(static_cast<Node>(rank), content, MPI_Wtime());
        multicast.acknowledge();
        if (rank == 0) end_with(allgather == Allgather::ring ? "paper" : "doubling", contest, arrivals);
    });
}

void call_by_kumi(const Contest& contest) {
    ::setenv("KUMI_GROUPS", costs, 1);
    const std::vector<std::byte> content(contest.bytes);
    simulate(contest.machine, "binomial_tree", [&](int rank) {
        Handlers handlers;
        const auto take = handlers.add("take", [](Call&, Bytes) {});
        Job job = join(contest, std::move(handlers), rank);
        must(job.barrier());
        if (rank == contest.machine.member_nodes()) {
            const double begun = begin();
            auto done = job.multicast(members_of(contest), take, Bytes(content));
            end_with("call", contest, MPI_Wtime() - begun);
        }
        must(job.barrier());
    });
}

void broadcast_by_mpi(const Contest& contest, Broadcast broadcast) {
    Arrivals arrivals = arrivals_of(contest);
    simulate(contest.machine, algorithm_of(broadcast, contest), [&](int rank) {
        const bool is_member = arrivals.members().contains(static_cast<Node>(rank));
        MPI_Comm ready = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, is_member ? 0 : MPI_UNDEFINED, rank, &ready);
        if (!is_member) return;
        MPI_Group group = MPI_GROUP_NULL;
        MPI_Comm_group(ready, &group);
        std::byte first{};
        MPI_Bcast(&first, 1, MPI_BYTE, 0, ready); // work that MPI does only once
        std::vector<std::byte> content(contest.bytes);
        if (rank == 0) std::ranges::copy(arrivals.content(), content.begin());
        MPI_Barrier(ready);
        if (rank == 0) arrivals.begin(begin());
        MPI_Comm used = ready;
        if (broadcast == Broadcast::create) {
            agree_on_number(ready);
            MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &used);
        }
        MPI_Bcast(content.data(), static_cast<int>(content.size()), MPI_BYTE, 0, used);
        arrivals.take(static_cast<Node>(rank), content, MPI_Wtime());
        MPI_Barrier(ready);
        if (rank == 0) end_with(name_of(broadcast), contest, arrivals);
    });
}

} // namespace kumi::bench
