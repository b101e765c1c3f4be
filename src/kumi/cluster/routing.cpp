#include "kumi/cluster/routing.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>

namespace kumi::cluster {

Routing::Routing(const Cluster& cluster, Placement placement, const std::vector<Broken>& broken)
    : cluster_(cluster), placement_(std::move(placement)), alike_of_(cluster.hosts.size()),
      places_(cluster.networks.size()), members_(cluster.networks.size()), broken_(broken.begin(), broken.end()),
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
    find_alike();
    links_.resize(alike_.size() * alike_.size());
    for (const Alike& from : alike_)
        for (const Alike& to : alike_) {
            const HostIndex other = &from != &to ? to.first : to.second.value_or(to.first);
            for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network) // the best first
                if (from.first != other && !obstacle(from.first, other, network)) {
                    link(from.first, to.first) = {true, network, 1, 0};
                    break;
                }
        }
    for (const Alike& hosts_alike : alike_) find_ways_to(hosts_alike.first);
}

/// On a network of another topology, and where some do not answer, every host is a case of its own.
void Routing::find_alike() {
    const bool is_regular = broken_.empty() && std::ranges::all_of(cluster_.networks, [](const Network& network) {
        return network.topology.kind() == Topology::Kind::all;
    });
    std::map<std::vector<bool>, std::uint32_t> known; // by the networks that they are on
    for (HostIndex host = 0; host < cluster_.hosts.size(); ++host) {
        if (nodes_on_[host].empty()) continue; // how it is joined matters to nobody
        std::vector<bool> is_on;
        for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network)
            is_on.push_back(cluster_.hosts[host].is_on(network));
        const auto next = static_cast<std::uint32_t>(alike_.size());
        const std::uint32_t place = is_regular ? known.try_emplace(std::move(is_on), next).first->second : next;
        if (place == next) alike_.push_back({.first = host});
        else if (!alike_[place].second) alike_[place].second = host;
        const std::vector<Node>& nodes = nodes_on_[host];
        Alike& hosts_alike = alike_[place];
        alike_of_[host] = place;
        hosts_alike.nodes.insert(hosts_alike.nodes.end(), nodes.begin(), nodes.end());
        hosts_alike.pairs += nodes.size() * (nodes.size() - 1);
        hosts_alike.slots = std::max(hosts_alike.slots, nodes.size());
    }
    for (Alike& hosts_alike : alike_) std::ranges::sort(hosts_alike.nodes);
}

/// What keeps that network from carrying what one host has for the other.
std::optional<Rejected::Why> Routing::obstacle(HostIndex from, HostIndex to, NetworkIndex network) const noexcept {
    if (!cluster_.hosts[from].is_on(network) || !cluster_.hosts[to].is_on(network)) return Rejected::Why::absent;
    const bool neighbours =
        cluster_.networks[network].topology.joins(places_[network][from], places_[network][to], members_[network]);
    if (!neighbours) return Rejected::Why::no_neighbours;
    if (!broken_.empty() && broken_.contains({from, to, network})) return Rejected::Why::silent;
    return std::nullopt;
}

std::string Routing::in_words(Rejected::Why why, HostIndex from, HostIndex to, NetworkIndex network) const {
    const std::string& sender = cluster_.hosts[from].name;
    const std::string& receiver = cluster_.hosts[to].name;
    switch (why) {
    case Rejected::Why::two_hosts: return fmt::format("{} and {} are two hosts", sender, receiver);
    case Rejected::Why::not_best:
        return from == to ? "shared memory is better"
                          : fmt::format("{} has priority", cluster_.networks[link(from, to).network].name);
    case Rejected::Why::absent:
        return fmt::format("{} is not on it", cluster_.hosts[from].is_on(network) ? receiver : sender);
    case Rejected::Why::no_neighbours:
        return fmt::format("{} and {} are no neighbours in its {}", sender, receiver,
                           cluster_.networks[network].topology.text());
    case Rejected::Why::silent: return fmt::format("{} does not answer on it", receiver);
    }
    return {};
}

/// Breadth first, from the destination back: a host's next hop is one nearer. Only hosts with nodes can pass messages
/// on. Among equals the one whose network is better, then the one that comes first. Hosts stand for those that are
/// alike.
void Routing::find_ways_to(HostIndex destination) {
    const auto is_joined = [&](const Alike& from) {
        return from.first == destination || link(from.first, destination).direct;
    };
    if (std::ranges::all_of(alike_, is_joined)) return;
    std::vector<std::uint32_t> distance(cluster_.hosts.size(), 0); // 0: not reached yet
    std::deque<HostIndex> reached{destination};
    while (!reached.empty()) {
        const HostIndex via = reached.front();
        reached.pop_front();
        const std::uint32_t hops = (via == destination ? 0 : distance[via]) + 1;
        for (const Alike& hosts_alike : alike_) {
            const HostIndex from = hosts_alike.first;
            if (from == destination || from == via || !link(from, via).direct) continue;
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

std::vector<Routing::Decided> Routing::decisions() const {
    std::vector<Decided> decided;
    const auto host_of = [&](Node node) { return placement_[node].host; };
    const auto add_within = [&](const Alike& hosts) {
        const auto has_company = [&](Node node) { return nodes_on_[host_of(node)].size() > 1; };
        if (hosts.pairs != 0) {
            const std::vector<Node>& company = nodes_on_[host_of(*std::ranges::find_if(hosts.nodes, has_company))];
            decided.push_back({company[0], company[1], hosts.pairs});
        }
        if (!hosts.second) return;
        const Node from = hosts.nodes.front();
        const Node to = *std::ranges::find_if(hosts.nodes, [&](Node node) { return host_of(node) != host_of(from); });
        decided.push_back({from, to, hosts.nodes.size() * (hosts.nodes.size() - 1) - hosts.pairs});
    };
    for (const Alike& from : alike_)
        for (const Alike& to : alike_) {
            if (&from == &to) add_within(from);
            else decided.push_back({from.nodes.front(), to.nodes.front(), from.nodes.size() * to.nodes.size()});
        }
    std::ranges::sort(decided, {}, [](const Decided& one) { return std::pair(one.from, one.to); });
    return decided;
}

ChannelCounts Routing::channels() const {
    ChannelCounts counts;
    counts.by_network.resize(cluster_.networks.size());
    for (const Decided& one : decisions()) {
        const Route taken = route(one.from, one.to);
        const Alike& there = alike_[alike_of_[placement_[one.to].host]];
        std::size_t channels = there.slots;
        if (taken.kind == Route::Kind::shared_memory) counts.shared_memory = 1;
        if (taken.kind != Route::Kind::direct && taken.kind != Route::Kind::relayed) continue;
        if (taken.kind == Route::Kind::relayed) {
            channels = 0;
            for (const Node to : there.nodes)
                channels = std::max<std::size_t>(channels, route(one.from, to).channel + 1);
        }
        counts.by_network[taken.network] =
            std::max(counts.by_network[taken.network], static_cast<std::uint32_t>(channels));
    }
    return counts;
}

} // namespace kumi::cluster
