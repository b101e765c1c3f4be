#include "report/cluster_map.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kumi::tools {
namespace {

using cluster::Cluster;
using cluster::HostIndex;
using cluster::NetworkIndex;
using cluster::Node;
using cluster::Route;
using cluster::Routing;

/// Wider tables are not shown on a terminal.
constexpr Node table_nodes_max = 32;

std::string counted(std::uint64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// By host.
std::vector<std::vector<Node>> nodes_by_host(const Cluster& cluster, const Routing& routing) {
    std::vector<std::vector<Node>> nodes(cluster.hosts.size());
    for (Node node = 0; node < routing.nodes(); ++node) nodes[routing.placement()[node].host].push_back(node);
    return nodes;
}

std::string list_networks(const Cluster& cluster, const Routing& routing) {
    const cluster::ChannelCounts channels = routing.channels();
    std::size_t width = std::string_view("shared memory").size();
    for (const cluster::Network& network : cluster.networks) width = std::max(width, network.name.size());
    std::string text = fmt::format("networks, the best first\n  S  {:<{}}  {:<5}  {}\n", "shared memory", width,
                                   "shmem", counted(channels.shared_memory, "channel"));
    for (NetworkIndex i = 0; i < cluster.networks.size(); ++i) {
        const cluster::Network& network = cluster.networks[i];
        text += fmt::format("  {}  {:<{}}  {:<5}  {}", network.letter, network.name, width, network.device,
                            counted(channels.by_network[i], "channel"));
        if (network.encrypt) text += ", encrypted";
        if (network.topology.kind() != cluster::Topology::Kind::all)
            text += fmt::format(", {}", network.topology.text());
        text += '\n';
    }
    return text;
}

std::string list_hosts(const Cluster& cluster, const Routing& routing) {
    std::size_t name_width = 4, nodes_width = 5;
    std::vector<std::string> node_lists;
    for (const auto& nodes : nodes_by_host(cluster, routing)) {
        node_lists.push_back(nodes.empty() ? "-" : fmt::format("{}", fmt::join(nodes, " ")));
        nodes_width = std::max(nodes_width, node_lists.back().size());
    }
    for (const cluster::Host& host : cluster.hosts) name_width = std::max(name_width, host.name.size());
    std::string text =
        fmt::format("hosts\n  {:<{}}  slots  {:<{}}  addresses\n", "host", name_width, "nodes", nodes_width);
    for (HostIndex i = 0; i < cluster.hosts.size(); ++i) {
        const cluster::Host& host = cluster.hosts[i];
        text += fmt::format("  {:<{}}  {:>5}  {:<{}} ", host.name, name_width, host.slots, node_lists[i], nodes_width);
        for (NetworkIndex network = 0; network < cluster.networks.size(); ++network)
            if (host.is_on(network))
                text += fmt::format(" {} {}", cluster.networks[network].letter, host.addresses[network]);
        text += '\n';
    }
    return text;
}

std::string draw_table(const Routing& routing) {
    std::string text = "routes: a row sends, a column receives\n      ";
    for (Node to = 0; to < routing.nodes(); ++to) text += fmt::format("{:>4}", to);
    text += '\n';
    for (Node from = 0; from < routing.nodes(); ++from) {
        text += fmt::format("  {:>4}", from);
        for (Node to = 0; to < routing.nodes(); ++to)
            text += fmt::format("{:>4}", routing.text(routing.route(from, to)));
        text += '\n';
    }
    return text;
}

std::string way_of(const Cluster& cluster, const Route& route) {
    switch (route.kind) {
    case Route::Kind::self: return "itself";
    case Route::Kind::shared_memory: return "shared memory";
    case Route::Kind::direct: return cluster.networks[route.network].name;
    case Route::Kind::relayed: return fmt::format("relays, over {} first", cluster.networks[route.network].name);
    case Route::Kind::none: break;
    }
    return "no way";
}

/// Pairs that were decided alike are one line, with the first of them as the example.
std::string explain(const Cluster& cluster, const Routing& routing) {
    std::map<std::string, Routing::Decided> decisions; // by the way and the kinds of reasons
    std::vector<const std::string*> in_order;
    for (const Routing::Decided& one : routing.decisions()) {
        std::string key = way_of(cluster, routing.route(one.from, one.to));
        for (const cluster::Rejected& way : routing.rejected(one.from, one.to))
            key += static_cast<char>('0' + static_cast<int>(way.why));
        const auto [found, is_new] = decisions.try_emplace(std::move(key), one);
        if (is_new) in_order.push_back(&found->first);
        else found->second.pairs += one.pairs;
    }
    if (in_order.empty()) return {};
    std::string text = "ways not taken\n";
    for (const std::string* key : in_order) {
        const Routing::Decided& decision = decisions.at(*key);
        text += fmt::format("  {} ({}, as {} -> {})\n", way_of(cluster, routing.route(decision.from, decision.to)),
                            counted(decision.pairs, "pair"), decision.from, decision.to);
        for (const cluster::Rejected& way : routing.rejected(decision.from, decision.to))
            text += fmt::format("      not {}: {}\n", way.way, way.text);
    }
    return text;
}

} // namespace

std::string map_as_text(const Cluster& cluster, const Routing& routing) {
    std::string text = fmt::format("{} on {}, {}\n\n{}\n{}\n", counted(routing.nodes(), "node"),
                                   counted(cluster.hosts.size(), "host"), counted(cluster.networks.size(), "network"),
                                   list_networks(cluster, routing), list_hosts(cluster, routing));
    if (routing.nodes() <= table_nodes_max) text += draw_table(routing) + '\n';
    else
        text += fmt::format("routes: {0} by {0} are too many to show; --json and --svg have them all, --route one\n\n",
                            routing.nodes());
    text += explain(cluster, routing);
    std::optional<Routing::Decided> separated;
    for (const Routing::Decided& one : routing.decisions()) {
        if (routing.route(one.from, one.to).kind != Route::Kind::none) continue;
        if (separated) separated->pairs += one.pairs;
        else separated = one;
    }
    if (separated)
        text += fmt::format("\n{} cannot reach each other, first {} -> {}: a job refuses to start like that\n",
                            counted(separated->pairs, "pair"), separated->from, separated->to);
    return text;
}

std::string describe_route(const Cluster& cluster, const Routing& routing, Node from, Node to) {
    const auto who = [&](Node node) {
        return fmt::format("{} on {}", node, cluster.hosts[routing.placement()[node].host].name);
    };
    const Route route = routing.route(from, to);
    std::string text =
        fmt::format("node {} to node {}: {} by {}\n", who(from), who(to), routing.text(route), way_of(cluster, route));
    for (Node at = from; route.kind == Route::Kind::relayed && at != to;) {
        const Route step = routing.route(at, to);
        text += fmt::format("  {} -> {}  {} by {}\n", at, step.next, routing.text(routing.route(at, step.next)),
                            way_of(cluster, routing.route(at, step.next)));
        at = step.next;
    }
    for (const cluster::Rejected& way : routing.rejected(from, to))
        text += fmt::format("  not {}: {}\n", way.way, way.text);
    return text;
}

std::string map_as_json(const Cluster& cluster, const Routing& routing) {
    using nlohmann::ordered_json;
    const cluster::ChannelCounts channels = routing.channels();
    const auto nodes = nodes_by_host(cluster, routing);
    ordered_json map;
    map["networks"].push_back(
        {{"name", "shared memory"}, {"letter", "S"}, {"device", "shmem"}, {"channels", channels.shared_memory}});
    for (NetworkIndex i = 0; i < cluster.networks.size(); ++i) {
        const cluster::Network& network = cluster.networks[i];
        map["networks"].push_back({{"name", network.name},
                                   {"letter", std::string(1, network.letter)},
                                   {"device", network.device},
                                   {"priority", network.priority},
                                   {"encrypt", network.encrypt},
                                   {"topology", network.topology.text()},
                                   {"channels", channels.by_network[i]}});
    }
    for (HostIndex i = 0; i < cluster.hosts.size(); ++i) {
        const cluster::Host& host = cluster.hosts[i];
        ordered_json addresses = ordered_json::object();
        for (NetworkIndex network = 0; network < cluster.networks.size(); ++network)
            if (host.is_on(network)) addresses[cluster.networks[network].name] = host.addresses[network];
        map["hosts"].push_back(
            {{"name", host.name}, {"slots", host.slots}, {"nodes", nodes[i]}, {"addresses", addresses}});
    }
    map["routes"] = ordered_json::array();
    for (Node from = 0; from < routing.nodes(); ++from)
        for (Node to = 0; to < routing.nodes(); ++to) {
            if (from == to) continue;
            const Route route = routing.route(from, to);
            ordered_json one = {
                {"from", from}, {"to", to}, {"route", routing.text(route)}, {"by", way_of(cluster, route)}};
            if (route.kind == Route::Kind::relayed) one["next"] = route.next, one["hops"] = route.hops;
            one["rejected"] = ordered_json::array();
            for (const cluster::Rejected& way : routing.rejected(from, to))
                one["rejected"].push_back({{"way", way.way}, {"why", way.text}});
            map["routes"].push_back(std::move(one));
        }
    return map.dump(2) + '\n';
}

} // namespace kumi::tools
