#include "group/node.hpp"

#include "contestant/together.hpp"
#include "contestant/work.hpp"
#include "group/work.hpp"

#include "kumi/group/group.hpp"
#include "kumi/kumi.hpp"

#include <fmt/format.h>

namespace kumi::bench {

int allreduce_node(const std::string& place) {
    Job job = must(Job::join());
    Together together(job);
    group::Group all = must(job.groups().group(Set::range(0, job.nodes())));
    for (const std::size_t bytes : allreduce_bytes) {
        const auto seconds = allreduce_seconds(
            bytes, static_cast<int>(job.nodes()),
            [&](const std::vector<double>& mine, std::vector<double>& sums) {
                must(all.allreduce(mine, sums, group::sum));
            },
            [&](std::int64_t count) { return together.as_first_says(count); });
        if (!seconds) return fail(error("a sum of {} bytes over {} nodes is wrong", bytes, job.nodes()));
        if (job.node() == 0) report(fmt::format("group.allreduce.{}.{}", bytes, place).c_str(), *seconds * 1e6);
    }
    return 0;
}

int alltoallv_node(const std::string& place) {
    Job job = must(Job::join());
    Together together(job);
    Group all = job.world();
    const auto nodes = static_cast<int>(job.nodes()), rank = static_cast<int>(job.node());
    for (const std::size_t bytes : alltoallv_bytes) {
        const std::vector<int> counts = alltoallv_counts(bytes, nodes);
        const auto part = static_cast<std::size_t>(counts[job.node()]);
        const auto exchange = [&](const std::vector<std::uint64_t>& send, std::vector<std::uint64_t>& receive) {
            std::vector<std::span<const std::uint64_t>> parts;
            std::vector<std::span<std::uint64_t>> rooms;
            std::size_t at = 0;
            for (const int count : counts) {
                parts.push_back(std::span(send).subspan(at, static_cast<std::size_t>(count)));
                rooms.push_back(std::span(receive).subspan(rooms.size() * part, part));
                at += static_cast<std::size_t>(count);
            }
            must(all.alltoallv(parts, rooms));
        };
        const auto seconds =
            exchange_seconds(counts, rank, exchange, [&](std::int64_t count) { return together.as_first_says(count); });
        if (!seconds) return fail(error("an exchange of {} bytes among {} nodes is wrong", bytes, nodes));
        if (rank == 0) report(fmt::format("group.alltoallv.{}.{}", bytes, place).c_str(), *seconds * 1e6);
    }
    return 0;
}

} // namespace kumi::bench
