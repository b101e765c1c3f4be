#include "composite/node.hpp"

#include "composite/exchange_node.hpp"
#include "composite/failover_node.hpp"
#include "composite/soak_node.hpp"
#include "contestant/request_reply.hpp"
#include "contestant/work.hpp"

#include "kumi/device/composite/assembly.hpp"
#include "kumi/device/shmem/shmem.hpp"
#include "kumi/device/udp/udp.hpp"
#include "kumi/kumi.hpp"

#include <numeric>
#include <unistd.h>

namespace kumi::bench {
namespace {

Result<Ends> open_shmem(pm::Node nodes, std::span<pm::Waker* const> wakers = {}) {
    return device::shmem::open_in_one_process(nodes, {}, wakers);
}

Result<Ends> open_udp(pm::Node nodes) {
    return device::udp::open_in_one_process(std::vector<std::string>(nodes, "127.0.0.1"), {.has_alternatives = true});
}

/// Composites of shared memory and UDP. Both join all nodes; messages use UDP if `by_udp`.
Result<Ends> open_composites(pm::Node nodes, bool by_udp) {
    std::vector<pm::Node> all(nodes);
    std::iota(all.begin(), all.end(), pm::Node{0});
    device::composite::Assembly assembly(nodes);
    for (const bool udp : {!by_udp, by_udp}) { // the composite uses the last one
        const auto open = [&](std::span<pm::Waker* const> wakers) {
            return udp ? open_udp(nodes) : open_shmem(nodes, wakers);
        };
        if (auto added = assembly.add(all, open); !added) return added.error();
    }
    return assembly.finish();
}

int pingpong(const std::string& row, const Ends& ends, std::size_t bytes) {
    const Always size{bytes};
    return request_and_reply(ends, spinning, size, size,
                             [&](double seconds) { report(row.c_str(), seconds / 2 * 1e9); });
}

/// Seconds of a poll that finds nothing, when the channel has found nothing for a while.
int idle_poll(const std::string& row, const Ends& ends) {
    report(row.c_str(), seconds_per_call([&] { ends[0]->poll(ignore, pm::all_messages); }) * 1e9);
    std::fflush(nullptr);
    ::_exit(0); // closing would wait for other nodes, and there are none
}

/// A node that joins and leaves.
int join_node() {
    const auto job = PmJob::join();
    return job ? 0 : fail(job.error());
}

/// Rows that need no lab and no job: the composite beside its devices.
int in_one_process(std::span<const std::string> words) {
    if (words.size() != 2) return fail(error("kumi-bench node: what and who are wanted"));
    const std::string& what = words[0];
    const bool bare = words[1] == "limit";
    const bool by_udp = what == "latency.64.udp";
    const pm::Node nodes = what != "poll.64" || bare ? 2 : 64;
    auto ends = what == "poll.64" || !bare ? open_composites(nodes, by_udp)
                : by_udp                   ? open_udp(nodes)
                                           : open_shmem(nodes);
    if (!ends) return fail(ends.error());
    const std::string row = "composite." + what;
    if (what == "poll.64") return idle_poll(row, *ends);
    const int code = pingpong(row, *ends, by_udp ? 64 : 8);
    std::fflush(nullptr);
    ::_exit(code); // the ends belong to processes that have ended
}

} // namespace

int composite_node(std::span<const std::string> words) {
    const std::string what = words.empty() ? "" : words[0];
    if (what.starts_with("failover.")) return failover_node(words);
    if (what.starts_with("alltoall.") || what.starts_with("neighbours.")) return exchange_node(words);
    if (what.starts_with("bulk.")) return bulk_node(words);
    if (what.starts_with("stripes.")) return stripes_node(words);
    if (what == "soak" || what == "steady") return soak_node(words.subspan(1), what == "steady");
    if (what == "start") return join_node();
    return in_one_process(words);
}

} // namespace kumi::bench
