#include "map_groups.hpp"

#include "kumi/base/system/machine.hpp"
#include "kumi/kumi.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace kumi::tools {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::array<std::size_t, 6> content_sizes{64, kib, 8 * kib, 64 * kib, kib * kib, 16 * kib * kib};

std::string costs_text(const group::Costs& costs) {
    const char* const origin = costs.origin == group::Origin::given      ? "as KUMI_GROUPS gives them"
                               : costs.origin == group::Origin::measured ? "as measured"
                                                                         : "as usual on such networks";
    return fmt::format(
        "a message takes {:.3g} us, {:.3g} us of them to send it, and a byte {:.3g} ns ({:.0f} MB/s): {}\n",
        costs.latency_us, costs.overhead_us, costs.us_per_byte * 1000, 1 / costs.us_per_byte, origin);
}

/// The nodes of each domain, as far as the topology is known.
std::string topology_text(const group::Topology& topology, Node nodes) {
    std::string text;
    for (std::size_t level = 0; level < topology.levels(); ++level) {
        std::vector<std::pair<std::uint32_t, Set>> domains;
        for (Node node = 0; node < nodes; ++node) {
            const std::uint32_t domain = topology.domain(level, node);
            auto found = std::ranges::find(domains, domain, &std::pair<std::uint32_t, Set>::first);
            if (found == domains.end()) found = domains.insert(found, {domain, {}});
            found->second.add(node);
        }
        text += fmt::format("{}:", level + 1 < topology.levels() ? "clusters" : "hosts");
        for (const auto& [domain, members] : domains) text += fmt::format(" {{{}}}", members.text());
        text += '\n';
    }
    return text.empty() ? "all nodes are equally near\n" : text;
}

std::vector<Node> counts_up_to(Node nodes) {
    std::vector<Node> counts;
    for (Node count = 2; count < nodes; count *= 2) counts.push_back(count);
    counts.push_back(nodes);
    return counts;
}

std::string time_text(double us) {
    return us < 1000 ? fmt::format("{:.3g} us", us) : fmt::format("{:.3g} ms", us / 1000);
}

std::string cell_of(const group::Choice& choice) {
    const std::string blocks =
        goes_in_blocks(choice.way) ? fmt::format(" ({})", base::readable_bytes(choice.block_bytes)) : "";
    return fmt::format("{}{} {}", name_of(choice.way), blocks, time_text(choice.expected_us));
}

std::string table_of(const group::Groups& groups, Node nodes) {
    constexpr int width = 34;
    std::string text = fmt::format("{:8}", "");
    for (const Node count : counts_up_to(nodes)) text += fmt::format("  {:{}}", fmt::format("to {}", count), width);
    for (const std::size_t bytes : content_sizes) {
        text.erase(text.find_last_not_of(' ') + 1);
        text += fmt::format("\n{:>8}", base::readable_bytes(bytes));
        for (const Node count : counts_up_to(nodes))
            text += fmt::format("  {:{}}", cell_of(groups.choice(bytes, count)), width);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + '\n';
}

} // namespace

int map_groups_node() {
    Handlers handlers;
    const auto nothing = handlers.add("nothing", [](Call&) {});
    auto job = Job::join(std::move(handlers));
    if (!job) return fail(job.error());
    if (job->node() == 0) {
        Set all;
        for (Node node = 0; node < job->nodes(); ++node) all.add(node);
        // What is not given is measured with the first multicasts.
        for (int i = 0; i < 30 && job->groups().costs().origin == group::Origin::usual; ++i)
            if (const auto missing = job->multicast(all, nothing).get(); !missing) return fail(missing.error());
        const std::string text =
            fmt::format("{} nodes\n{}{}\n{}", job->nodes(), costs_text(job->groups().costs()),
                        topology_text(job->groups().topology(), job->nodes()), table_of(job->groups(), job->nodes()));
        std::fputs(text.c_str(), stdout);
        if (std::fflush(stdout) != 0) return fail(system_error(errno, "writing the map"));
    }
    const auto met = job->barrier();
    return met ? 0 : fail(met.error());
}

} // namespace kumi::tools
