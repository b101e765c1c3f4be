#include "kumi/cluster/routing.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>

namespace kumi::cluster {

Routing::Routing(const Cluster& cluster, Placement placement, const std::vector<Broken>& broken)
    : cluster_(cluster), placement_(std::move(placement)), class_of_(cluster.hosts.size()),
      positions_(cluster.networks.size()), members_(cluster.networks.size()), broken_(broken.begin(), broken.end()),
      nodes_on_(cluster.hosts.size()) {
    const auto hosts = static_cast<HostIndex>(cluster_.hosts.size());
    for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network) {
        positions_[network].resize(hosts);
        for (HostIndex host = 0; host < hosts; ++host)
            if (cluster_.hosts[host].is_on(network)) positions_[network][host] = members_[network]++;
    }
    for (Node node = 0; node < nodes(); ++node) {
        const Seat& seat = placement_[node];
        KUMI_ASSERT(seat.host < hosts && seat.slot == nodes_on_[seat.host].size());
        nodes_on_[seat.host].push_back(node);
    }
    find_host_classes();
    host_routes_.resize(classes_.size() * classes_.size());
    for (const HostClass& from : classes_)
        for (const HostClass& to : classes_) {
            const HostIndex other = &from != &to ? to.first : to.second.value_or(to.first);
            for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network) // the best first
                if (from.first != other && !obstacle(from.first, other, network)) {
                    host_route(from.first, to.first) = {true, network, 1, 0};
                    break;
                }
        }
    for (const HostClass& host_class : classes_) find_relayed_routes_to(host_class.first);
}

/// If a network has another topology, or is broken somewhere, every host is a class of its own.
void Routing::find_host_classes() {
    const bool is_regular = broken_.empty() && std::ranges::all_of(cluster_.networks, [](const Network& network) {
        return network.topology.kind() == Topology::Kind::all;
    });
    std::map<std::vector<bool>, std::uint32_t> known; // by the networks that the hosts are on
    for (HostIndex host = 0; host < cluster_.hosts.size(); ++host) {
        if (nodes_on_[host].empty()) continue; // its networks do not matter
        std::vector<bool> is_on;
        for (NetworkIndex network = 0; network < cluster_.networks.size(); ++network)
            is_on.push_back(cluster_.hosts[host].is_on(network));
        const auto next = static_cast<std::uint32_t>(classes_.size());
        const std::uint32_t place = is_regular ? known.try_emplace(std::move(is_on), next).first->second : next;
        if (place == next) classes_.push_back({.first = host});
        else if (!classes_[place].second) classes_[place].second = host;
        const std::vector<Node>& nodes = nodes_on_[host];
        HostClass& host_class = classes_[place];
        class_of_[host] = place;
        host_class.nodes.insert(host_class.nodes.end(), nodes.begin(), nodes.end());
        host_class.pairs += nodes.size() * (nodes.size() - 1);
        host_class.slots = std::max(host_class.slots, nodes.size());
    }
    for (HostClass& host_class : classes_) std::ranges::sort(host_class.nodes);
}

/// Why that network does not connect the two hosts, if it does not.
std::optional<Rejected::Why> Routing::obstacle(HostIndex from, HostIndex to, NetworkIndex network) const noexcept {
    if (!cluster_.hosts[from].is_on(network) || !cluster_.hosts[to].is_on(network)) return Rejected::Why::absent;
    const std::vector<std::uint32_t>& positions = positions_[network];
    const bool neighbours =
        cluster_.networks[network].topology.joins(positions[from], positions[to], members_[network]);
    if (!neighbours) return Rejected::Why::no_neighbours;
    if (!broken_.empty() && broken_.contains({from, to, network})) return Rejected::Why::silent;
    return std::nullopt;
}

std::string Routing::reason_text(Rejected::Why why, HostIndex from, HostIndex to, NetworkIndex network) const {
    const std::string& sender = cluster_.hosts[from].name;
    const std::string& receiver = cluster_.hosts[to].name;
    switch (why) {
    case Rejected::Why::two_hosts: return fmt::format("{} and {} are two hosts", sender, receiver);
    case Rejected::Why::not_best:
        return from == to ? "shared memory is better"
                          : fmt::format("{} has priority", cluster_.networks[host_route(from, to).network].name);
    case Rejected::Why::absent:
        return fmt::format("{} is not on it", cluster_.hosts[from].is_on(network) ? receiver : sender);
    case Rejected::Why::no_neighbours:
        return fmt::format("{} and {} are no neighbours in its {}", sender, receiver,
                           cluster_.networks[network].topology.text());
    case Rejected::Why::silent: return fmt::format("{} does not answer on it", receiver);
    }
    return {};
}

/// Breadth-first search from the destination: a host's next hop is one nearer to it. Only hosts with nodes can relay
/// messages. Among equal relays the one on the better network is used, then the first. A host stands for all hosts of
/// its class.
void Routing::find_relayed_routes_to(HostIndex destination) {
    const auto is_joined = [&](const HostClass& from) {
        return from.first == destination || host_route(from.first, destination).direct;
    };
    if (std::ranges::all_of(classes_, is_joined)) return;
    std::vector<std::uint32_t> distance(cluster_.hosts.size(), 0); // 0: not reached yet
    std::deque<HostIndex> reached{destination};
    while (!reached.empty()) {
        const HostIndex via = reached.front();
        reached.pop_front();
        const std::uint32_t hops = (via == destination ? 0 : distance[via]) + 1;
        for (const HostClass& host_class : classes_) {
            const HostIndex from = host_class.first;
            if (from == destination || from == via || !host_route(from, via).direct) continue;
            const bool is_new = distance[from] == 0;
            if (is_new) distance[from] = hops, reached.push_back(from);
            if (distance[from] != hops || hops == 1) continue;
            HostRoute& found = host_route(from, destination);
            const bool better = is_new || host_route(from, via).network < host_route(from, found.next).network;
            if (better) found = {false, host_route(from, via).network, hops, via};
        }
    }
}

Route Routing::route(Node from, Node to) const noexcept {
    const Seat& here = placement_[from];
    const Seat& there = placement_[to];
    if (from == to) return {Route::Kind::self, 0, 0, to, 0};
    if (here.host == there.host) return {Route::Kind::shared_memory, 0, 0, to, 1};
    const HostRoute& found = host_route(here.host, there.host);
    if (found.direct) return {Route::Kind::direct, found.network, there.slot, to, 1};
    if (found.distance == 0) return {};
    const std::vector<Node>& relays = nodes_on_[found.next]; // spread over the destinations
    const auto slot = static_cast<std::uint32_t>(to % relays.size());
    return {Route::Kind::relayed, found.network, slot, relays[slot], found.distance};
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
        ways.push_back({std::move(way), why, reason_text(why, here, there, network)});
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
    const auto add_within = [&](const HostClass& hosts) {
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
    for (const HostClass& from : classes_)
        for (const HostClass& to : classes_) {
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
        const HostClass& there = classes_[class_of_[placement_[one.to].host]];
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
