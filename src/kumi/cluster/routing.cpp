#include "kumi/cluster/routing.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>

namespace kumi::cluster {

Routing::Routing(const Cluster& cluster, Placement placement, const std::vector<Broken>& broken)
    : cluster_(cluster), placement_(std::move(placement)), places_(cluster.networks.size()), members_(cluster.networks.size()),
      broken_(cluster.networks.size() * cluster.hosts.size() * cluster.hosts.size()), links_(cluster.hosts.size() * cluster.hosts.size()),
      nodes_on_(cluster.hosts.size()) {
    const auto hosts = static_cast<HostIndex>(cluster_.hosts.size());
    for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network) {
        places_[network].resize(hosts);
        for (HostIndex host = 0; host < hosts; ++host)
            if (cluster_.hosts[host].is_on(network)) places_[network][host] = members_[network]++;
    }
    for (Node node = 0; node < nodes(); ++node) {
        const Seat& seat = placement_[node];
        KUMI_ASSERT(seat.host < hosts && seat.slot == nodes_on_[seat.host].size());
        nodes_on_[seat.host].push_back(node);
    }
    for (const Broken& what : broken) broken_[(what.network * hosts + what.from) * hosts + what.to] = true;

    for (HostIndex from = 0; from < hosts; ++from)
        for (HostIndex to = 0; to < hosts; ++to)
            for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network) // the best first
                if (from != to && !obstacle(from, to, network)) {
                    link(from, to) = {true, network, 1, to};
                    break;
                }
    for (HostIndex host = 0; host < hosts; ++host) find_ways_to(host);
}

/// What keeps that network from carrying what one host has for the other.
std::optional<Rejected::Why> Routing::obstacle(HostIndex from, HostIndex to, NetworkIndex network) const noexcept {
    const std::size_t hosts = cluster_.hosts.size();
    if (!cluster_.hosts[from].is_on(network) || !cluster_.hosts[to].is_on(network)) return Rejected::Why::absent;
    const bool neighbours = cluster_.networks[network].topology.joins(places_[network][from], places_[network][to], members_[network]);
    if (!neighbours) return Rejected::Why::no_neighbours;
    if (broken_[(network * hosts + from) * hosts + to]) return Rejected::Why::silent;
    return std::nullopt;
}

std::string Routing::in_words(Rejected::Why why, HostIndex from, HostIndex to, NetworkIndex network) const {
    const std::string& sender = cluster_.hosts[from].name;
    const std::string& receiver = cluster_.hosts[to].name;
    switch (why) {
    case Rejected::Why::two_hosts: return fmt::format("{} and {} are two hosts", sender, receiver);
    case Rejected::Why::not_best: return from == to ? "shared memory is better" : fmt::format("{} has priority", cluster_.networks[link(from, to).network].name);
    case Rejected::Why::absent: return fmt::format("{} is not on it", cluster_.hosts[from].is_on(network) ? receiver : sender);
    case Rejected::Why::no_neighbours:
        return fmt::format("{} and {} are no neighbours in its {}", sender, receiver, cluster_.networks[network].topology.text());
    case Rejected::Why::silent: return fmt::format("{} does not answer on it", receiver);
    }
    return {};
}

/// Breadth first, from the destination back: a host's next hop is one nearer. Only hosts with nodes can pass messages
/// on. Among equals the one whose network is better, then the one that comes first.
void Routing::find_ways_to(HostIndex destination) {
    const auto hosts = static_cast<HostIndex>(cluster_.hosts.size());
    std::vector<std::uint32_t> distance(hosts, 0); // 0: not reached yet
    std::deque<HostIndex> reached{destination};
    while (!reached.empty()) {
        const HostIndex via = reached.front();
        reached.pop_front();
        const std::uint32_t hops = (via == destination ? 0 : distance[via]) + 1;
        for (HostIndex from = 0; from < hosts; ++from) {
            if (from == destination || nodes_on_[from].empty() || !link(from, via).direct) continue;
            const bool is_new = distance[from] == 0;
            if (is_new) distance[from] = hops, reached.push_back(from);
            if (distance[from] != hops || hops == 1) continue;
            Link& way = link(from, destination);
            const bool better = is_new || link(from, via).network < link(from, way.next).network;
            if (better) way = {false, link(from, via).network, hops, via};
        }
    }
}

Route Routing::route(Node from, Node to) const noexcept {
    const Seat& here = placement_[from];
    const Seat& there = placement_[to];
    if (from == to) return {Route::Kind::self, 0, 0, to, 0};
    if (here.host == there.host) return {Route::Kind::shared_memory, 0, 0, to, 1};
    const Link& way = link(here.host, there.host);
    if (way.direct) return {Route::Kind::direct, way.network, there.slot, to, 1};
    if (way.distance == 0) return {};
    const std::vector<Node>& relays = nodes_on_[way.next]; // destinations share them
    const auto slot = static_cast<std::uint32_t>(to % relays.size());
    return {Route::Kind::relayed, way.network, slot, relays[slot], way.distance};
}

std::string Routing::text(const Route& route) const {
    switch (route.kind) {
    case Route::Kind::self: return "-";
    case Route::Kind::shared_memory: return fmt::format("S{}", route.channel);
    case Route::Kind::direct: return fmt::format("{}{}", cluster_.networks[route.network].letter, route.channel);
    case Route::Kind::relayed: return fmt::format(">{}{}", cluster_.networks[route.network].letter, route.channel);
    case Route::Kind::none: break;
    }
    return "!";
}

std::vector<Rejected> Routing::rejected(Node from, Node to) const {
    std::vector<Rejected> ways;
    const HostIndex here = placement_[from].host;
    const HostIndex there = placement_[to].host;
    const Route taken = route(from, to);
    if (taken.kind == Route::Kind::self) return ways;
    const auto reject = [&](std::string way, Rejected::Why why, NetworkIndex network) {
        ways.push_back({std::move(way), why, in_words(why, here, there, network)});
    };
    if (here != there) reject("shared memory", Rejected::Why::two_hosts, 0);
    for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network) {
        if (taken.kind == Route::Kind::direct && taken.network == network) continue;
        const auto why = obstacle(here, there, network);
        const bool hinders = why && (here != there || *why == Rejected::Why::absent);
        reject(cluster_.networks[network].name, hinders ? *why : Rejected::Why::not_best, network);
    }
    return ways;
}

ChannelCounts Routing::channels() const {
    ChannelCounts counts;
    counts.by_network.resize(cluster_.networks.size());
    for (Node from = 0; from < nodes(); ++from)
        for (Node to = 0; to < nodes(); ++to) {
            const Route taken = route(from, to);
            if (taken.kind == Route::Kind::shared_memory) counts.shared_memory = 1;
            if (taken.kind != Route::Kind::direct && taken.kind != Route::Kind::relayed) continue;
            counts.by_network[taken.network] = std::max(counts.by_network[taken.network], taken.channel + 1);
        }
    return counts;
}

std::vector<std::pair<Node, Node>> Routing::separated() const {
    std::vector<std::pair<Node, Node>> pairs;
    for (Node from = 0; from < nodes(); ++from)
        for (Node to = 0; to < nodes(); ++to)
            if (route(from, to).kind == Route::Kind::none) pairs.emplace_back(from, to);
    return pairs;
}

} // namespace kumi::cluster
