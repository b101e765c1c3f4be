#include "patterns/node.hpp"

#include "contestant/partner.hpp"
#include "contestant/together.hpp"
#include "patterns/work.hpp"

#include "kumi/kumi.hpp"

namespace kumi::bench {
namespace {

void report_barrier(const std::string& place, double seconds) {
    report(("patterns.barrier." + place).c_str(), seconds * 1e6);
}

} // namespace

int barriers_node(const std::string& place) {
    Job job = must(Job::join());
    Together together(job);
    const double seconds = barrier_seconds(job, together);
    if (job.node() == 0) report_barrier(place, seconds);
    return 0;
}

int message_node(const std::string& place) {
    PmJob job = must(PmJob::join());
    Partner partner(job.channel());
    pingpong_seconds(partner, sizeof(std::uint64_t), pingpongs_small / 10);
    const double seconds = pingpong_seconds(partner, sizeof(std::uint64_t), pingpongs_small);
    if (partner.is_first()) report_barrier(place, seconds);
    partner.barrier();
    return 0;
}

int placement_node(const std::string& place) {
    Job job = must(Job::join());
    Together together(job);
    Group all = job.world();
    for (const std::size_t bytes : placement_bytes) {
        const std::vector<int> counts(job.nodes(), static_cast<int>(bytes / sizeof(std::uint64_t)));
        const auto exchange = [&](const std::vector<std::uint64_t>& send, std::vector<std::uint64_t>& receive) {
            must(all.alltoall(send, receive));
        };
        const auto seconds = exchange_seconds(counts, static_cast<int>(job.node()), exchange,
                                              [&](std::int64_t count) { return together.as_first_says(count); });
        if (!seconds) return fail(error("an exchange of {} bytes among {} nodes is wrong", bytes, job.nodes()));
        if (job.node() == 0) report_pattern("placement", bytes, place, *seconds * 1e6);
    }
    return 0;
}

int patterns_node(std::span<const std::string> words) {
    if (words.size() != 2) return fail(error("kumi-bench node: what and where are wanted"));
    const std::string& what = words[0];
    const std::string& place = words[1];
    if (what == "pairs" || what == "pingpongs" || what == "incast") return rates_node(what, place);
    if (what == "multicasts") return multicasts_node(place);
    if (what == "barrier") return barriers_node(place);
    if (what == "message") return message_node(place);
    if (what == "placement") return placement_node(place);
    return fail(error("kumi-bench node: the patterns' benchmark has no {}", what));
}

} // namespace kumi::bench
