#include "simulated/contest.hpp"

#include "contestant/measure.hpp"
#include "contestant/work.hpp"
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
/// The paper sends messages up to this size whole.
constexpr std::size_t paper_whole_bytes = 8192;
/// The costs of simulation.cpp, given to Kumi as settings.
constexpr const char* costs = "overhead=0.2,latency=1.2,bandwidth=10000";

/// Of all ranks, which are one process.
double begun = 0;
double last = 0;
void note_arrival() { last = std::max(last, MPI_Wtime()); }
void begin() {
    sleep(quiet);
    last = begun = MPI_Wtime();
}

[[noreturn]] void end_with(const char* what, const Contest& contest, double seconds) {
    report(fmt::format("simulated.{}.{}.{}.{}", what, contest.machine.name, contest.bytes, contest.members).c_str(),
           seconds * 1e6);
    end();
}

Node member(const Contest& contest, int index) {
    return static_cast<Node>(std::int64_t{contest.machine.member_nodes()} * index / contest.members);
}

Set members_of(const Contest& contest) {
    Set set;
    for (int i = 0; i < contest.members; ++i) set.add(member(contest, i));
    return set;
}

Job join(const Contest& contest, Handlers&& handlers, int rank) {
    mpi::Options options;
    options.channel.sleeps_in_mpi = true;
    options.channel.packet_bytes = at_once_bytes;
    options.channel.receives = 4; // with more, the simulation takes longer
    if (contest.machine.groups > 1) options.cluster = static_cast<std::uint32_t>(rank / contest.machine.nodes_in_group);
    return must(mpi::join(MPI_COMM_WORLD, std::move(handlers), options));
}

/// The algorithms that MPICH 3 and 4 choose by default.
std::string mpich_bcast(const Contest& contest) {
    if (contest.bytes <= 12288 || contest.members < 8) return "binomial_tree";
    return contest.bytes <= 524288 && std::has_single_bit(static_cast<unsigned>(contest.members))
               ? "scatter_rdb_allgather"
               : "scatter_LR_allgather";
}

/// SimGrid makes communicators without messages. In MPICH the members first agree on a free number: a reduction of one
/// bit for each number.
void agree_on_number(MPI_Comm members) {
    std::array<std::uint32_t, 65> free{}, all{};
    MPI_Allreduce(free.data(), all.data(), static_cast<int>(free.size()), MPI_UINT32_T, MPI_BAND, members);
}

} // namespace

void multicast_by_kumi(const Contest& contest, const std::string& way) {
    std::string settings = costs;
    if (way == "paper") settings += contest.bytes <= paper_whole_bytes ? ",way=binomial" : ",way=scatter_ring";
    ::setenv("KUMI_GROUPS", settings.c_str(), 1);
    const std::vector<std::byte> content(contest.bytes);
    simulate(contest.machine, "binomial_tree", [&](int rank) {
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, Bytes bytes) {
            if (bytes.size() != contest.bytes) std::abort();
            note_arrival();
        });
        Job job = join(contest, std::move(handlers), rank);
        must(job.barrier());
        if (rank == 0) {
            begin();
            must(job.multicast(members_of(contest), take, Bytes(content)).get());
            end_with(way.empty() ? "multicast" : way.c_str(), contest, last - begun);
        }
        must(job.barrier()); // this rank waits here
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
            begin();
            auto done = job.multicast(members_of(contest), take, Bytes(content));
            end_with("call", contest, MPI_Wtime() - begun);
        }
        must(job.barrier());
    });
}

void broadcast_by_mpi(const Contest& contest, bool creates) {
    std::vector<std::byte> content(contest.bytes); // shared by all ranks, because none reads it
    const Set set = members_of(contest);
    simulate(contest.machine, mpich_bcast(contest), [&](int rank) {
        const bool is_member = set.contains(static_cast<Node>(rank));
        MPI_Comm ready = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, is_member ? 0 : MPI_UNDEFINED, rank, &ready);
        if (!is_member) return;
        MPI_Group group = MPI_GROUP_NULL;
        MPI_Comm_group(ready, &group);
        MPI_Bcast(content.data(), 1, MPI_BYTE, 0, ready); // work that MPI does only once
        MPI_Barrier(ready);
        if (rank == 0) begin();
        MPI_Comm used = ready;
        if (creates) {
            agree_on_number(ready);
            MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &used);
        }
        MPI_Bcast(content.data(), static_cast<int>(content.size()), MPI_BYTE, 0, used);
        note_arrival();
        MPI_Barrier(ready);
        if (rank == 0) end_with(creates ? "create" : "bcast", contest, last - begun);
    });
}

} // namespace kumi::bench
