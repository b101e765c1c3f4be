#include "patterns/node.hpp"

#include "contestant/multicast.hpp"
#include "contestant/partner.hpp"
#include "contestant/together.hpp"
#include "patterns/work.hpp"

#include "kumi/kumi.hpp"

#include <array>
#include <fmt/format.h>
#include <stdexcept>

namespace kumi::bench {

int multicasts_node(const std::string& place) {
    std::array<std::uint64_t, multicasts_nodes> last{}; // by master
    Handlers handlers;
    const auto take = handlers.add("bench.take", [&](Call&, Bytes content) {
        const std::uint64_t number = stamp_of(content);
        std::uint64_t& before = last[number % last.size()];
        if (number <= before) throw std::runtime_error(fmt::format("{} after {} is not what was sent", number, before));
        before = number;
    });
    Job job = must(Job::join(std::move(handlers)));
    Together together(job);
    const auto node = static_cast<int>(job.node());
    const bool is_master = node < std::stoi(place);
    const Set members = set_of(members_of(node, static_cast<int>(job.nodes())));
    std::uint64_t number = job.node(); // tells its master
    for (const std::size_t bytes : multicasts_bytes) {
        std::vector<std::byte> content(bytes);
        const auto run = [&](std::int64_t count) {
            must(job.barrier());
            const Instant start = now();
            for (std::int64_t i = 0; is_master && i < count; ++i) {
                stamp(content, number += last.size());
                Future<Set> done = job.multicast(members, take, Bytes(content));
                finish(done);
            }
            must(job.barrier()); // the other nodes wait in this barrier meanwhile
            return seconds_since(start) / static_cast<double>(count);
        };
        const double seconds =
            settled_seconds(1, run, [&](std::int64_t count) { return together.as_first_says(count); });
        if (node == 0) report_pattern("multicasts", bytes, place, seconds * 1e6);
    }
    return 0;
}

} // namespace kumi::bench
