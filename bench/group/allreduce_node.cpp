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

} // namespace kumi::bench
