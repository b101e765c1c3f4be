#include "kumi/cluster/placement.hpp"

#include "kumi/base/text/number_text.hpp"

#include <algorithm>

namespace kumi::cluster {
namespace {

constexpr std::string_view per_host_ending = "-per-host";

} // namespace

Result<Policy> Policy::parse(std::string_view text) {
    if (text == "pack") return pack();
    if (text == "spread") return spread();
    if (text.ends_with(per_host_ending)) {
        const auto count = base::number_in<std::uint32_t>(text.substr(0, text.size() - per_host_ending.size()));
        if (count && *count > 0) return per_host(*count);
    }
    return error("{}: write pack, spread, or a number like 2-per-host", text);
}

std::string Policy::text() const {
    if (kind_ == Kind::per_host) return fmt::format("{}{}", count_, per_host_ending);
    return kind_ == Kind::pack ? "pack" : "spread";
}

Result<Placement> place(const Cluster& cluster, std::uint32_t nodes, Policy policy) {
    const auto plural = [](std::uint64_t count) { return count == 1 ? "" : "s"; };
    if (nodes > cluster.slots())
        return error("{} node{} wanted, and the {} {} slot{} in all: start fewer, or give hosts more slots", nodes,
                     plural(nodes),
                     cluster.hosts.size() == 1 ? "host has" : fmt::format("{} hosts have", cluster.hosts.size()),
                     cluster.slots(), plural(cluster.slots()));
    std::vector<std::uint32_t> counts(cluster.hosts.size());
    std::uint32_t left = nodes;
    // In rounds: in each round every host gets up to `step` more nodes.
    const std::uint32_t step = policy.kind_ == Policy::Kind::spread ? 1
                               : policy.kind_ == Policy::Kind::pack ? nodes
                                                                    : policy.count_;
    const bool one_round = policy.kind_ == Policy::Kind::per_host;
    do {
        for (std::size_t host = 0; host < counts.size(); ++host) {
            const std::uint32_t taken = std::min({step, left, cluster.hosts[host].slots - counts[host]});
            counts[host] += taken;
            left -= taken;
        }
    } while (left > 0 && !one_round);
    if (left > 0)
        return error("{}: only {} of {} nodes fit; give hosts more slots, or use another placement",
                     policy.text(), nodes - left, nodes);
    Placement placement;
    for (HostIndex host = 0; host < counts.size(); ++host)
        for (std::uint32_t slot = 0; slot < counts[host]; ++slot) placement.push_back({host, slot});
    return placement;
}

} // namespace kumi::cluster
