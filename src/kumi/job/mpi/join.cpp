#include "kumi/job/mpi/join.hpp"

#include "kumi/base/text/fnv.hpp"
#include "kumi/device/mpi/mpi.hpp"
#include "kumi/job/mpi/session.hpp"

#include <map>
#include <utility>
#include <vector>

namespace kumi::mpi {
namespace {

/// Clusters, if they are told, and hosts.
Result<group::Topology> topology_of(boot::Session& session, std::optional<std::uint32_t> cluster) {
    struct Place {
        std::uint64_t host; // a digest of its name
        std::uint32_t cluster;
        std::uint32_t has_cluster;
    };
    const Place mine{base::fnv1a(session.standing().host), cluster.value_or(0), cluster.has_value() ? 1u : 0u};
    const auto told = session.exchange(bytes_of(mine));
    if (!told) return told.error();
    std::map<std::uint64_t, std::uint32_t> hosts; // by digest, the first node there
    std::vector<std::vector<std::uint32_t>> levels(2);
    for (std::uint32_t node = 0; node < told->size(); ++node) {
        Place place{};
        if (!read_value((*told)[node], place))
            return error(ErrorCode::misuse, "node {} runs another version of Kumi: run the same on all nodes", node);
        if (place.has_cluster != mine.has_cluster)
            return error("joining by MPI: node {} is told its cluster, and node {} is not: tell all of them, or none",
                         cluster ? session.standing().node : node, cluster ? node : session.standing().node);
        levels[0].push_back(place.cluster);
        levels[1].push_back(hosts.try_emplace(place.host, node).first->second);
    }
    return group::Topology(std::move(levels));
}

} // namespace

Result<Job> join(MPI_Comm comm, Handlers&& handlers, const Options& options) {
    if (auto good = device::mpi::check(comm); !good) return good.error();
    auto session = open_session(comm);
    if (!session) return session.error();
    auto topology = topology_of(**session, options.cluster);
    if (!topology) return topology.error();
    auto channel = device::mpi::open(comm, options.channel);
    if (!channel) return channel.error();
    int threads = MPI_THREAD_SINGLE;
    MPI_Query_thread(&threads);
    group::Settings groups = options.groups;
    if (options.channel.sleeps_in_mpi && !groups.costs) groups.costs = group::Costs{};
    return Job::adopt(*std::move(session), *std::move(channel), std::move(handlers),
                      {.may_use_background = threads == MPI_THREAD_MULTIPLE,
                       .topology = *std::move(topology),
                       .groups = groups,
                       .owns_process = true});
}

} // namespace kumi::mpi
