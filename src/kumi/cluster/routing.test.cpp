#include "kumi/cluster/routing.hpp"

#include "kumi/cluster/file.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

namespace kumi::cluster {
namespace {

Cluster cluster_of(std::string_view text) {
    auto read = parse_cluster(text, "test");
    EXPECT_TRUE(read) << (read ? "" : read.error().text());
    return read ? *read : Cluster{};
}

/// The paper's figure 3.
constexpr std::string_view figure3 = R"(
    [[network]]
    name = "myrinet"
    [[network]]
    name = "gnic"
    [[network]]
    name = "udp"
    [[host]]
    name = "a[0-3]"
    slots = 2
    address = { myrinet = "10.1.0.[1-4]", udp = "10.3.0.[1-4]" }
    [[host]]
    name = "b[0-3]"
    address = { gnic = "10.2.0.[1-4]", udp = "10.3.0.[5-8]" }
)";

Routing routing_of(const Cluster& cluster, std::uint32_t nodes, Policy policy = Policy::pack(),
                   const std::vector<Broken>& broken = {}) {
    auto placement = place(cluster, nodes, policy);
    EXPECT_TRUE(placement) << (placement ? "" : placement.error().text());
    return Routing(cluster, placement ? *placement : Placement{}, broken);
}

std::vector<std::string> row(const Routing& routing, Node from) {
    std::vector<std::string> texts;
    for (Node to = 0; to < routing.nodes(); ++to) texts.push_back(routing.text(routing.route(from, to)));
    return texts;
}

using Row = std::vector<std::string>;

/// Pairs of nodes without a way.
std::vector<std::pair<Node, Node>> separated(const Routing& routing) {
    std::vector<std::pair<Node, Node>> pairs;
    for (Node from = 0; from < routing.nodes(); ++from)
        for (Node to = 0; to < routing.nodes(); ++to)
            if (routing.route(from, to).kind == Route::Kind::none) pairs.emplace_back(from, to);
    return pairs;
}

/// What was decided about a pair, and why.
std::string decision(const Routing& routing, Node from, Node to) {
    const Route route = routing.route(from, to);
    std::string text = std::to_string(static_cast<int>(route.kind)) + ":" + std::to_string(route.network);
    for (const Rejected& way : routing.rejected(from, to)) text += static_cast<char>('0' + static_cast<int>(way.why));
    return text;
}

TEST(Routing, the_papers_figure_3_gives_its_table_2) {
    const Routing routing = routing_of(cluster_of(figure3), 12);
    // The table in the paper shows nodes 0, 1, 2, 8 and 9, and dots for the others, which follow the same rules.
    EXPECT_EQ(row(routing, 0), (Row{"-", "S0", "M0", "M1", "M0", "M1", "M0", "M1", "U0", "U0", "U0", "U0"}));
    EXPECT_EQ(row(routing, 1), (Row{"S0", "-", "M0", "M1", "M0", "M1", "M0", "M1", "U0", "U0", "U0", "U0"}));
    EXPECT_EQ(row(routing, 2), (Row{"M0", "M1", "-", "S0", "M0", "M1", "M0", "M1", "U0", "U0", "U0", "U0"}));
    EXPECT_EQ(row(routing, 8), (Row{"U0", "U1", "U0", "U1", "U0", "U1", "U0", "U1", "-", "G0", "G0", "G0"}));
    EXPECT_EQ(row(routing, 9), (Row{"U0", "U1", "U0", "U1", "U0", "U1", "U0", "U1", "G0", "-", "G0", "G0"}));
}

TEST(Routing, the_papers_figure_3_needs_the_channels_of_its_figure_5) {
    const ChannelCounts counts = routing_of(cluster_of(figure3), 12).channels();
    EXPECT_EQ(counts.shared_memory, 1u);
    EXPECT_EQ(counts.by_network, (std::vector<std::uint32_t>{2, 1, 2}));
}

TEST(Routing, priority_counts_and_not_the_order_of_the_file) {
    const Cluster cluster = cluster_of(R"(
        [[network]]
        name = "slow"
        priority = 1
        [[network]]
        name = "fast"
        priority = 2
        [[host]]
        name = "h[0-1]"
        address = { slow = "10.0.0.[1-2]", fast = "10.0.1.[1-2]" }
    )");
    EXPECT_EQ(row(routing_of(cluster, 2), 0), (Row{"-", "F0"}));
}

TEST(Routing, every_way_not_taken_has_its_reason) {
    const Routing routing = routing_of(cluster_of(figure3), 12);
    const auto far = routing.rejected(0, 8);
    ASSERT_EQ(far.size(), 3u);
    EXPECT_EQ(far[0].text, "a0 and b0 are two hosts");
    EXPECT_EQ(far[1].text, "b0 is not on it");
    EXPECT_EQ(far[2].text, "a0 is not on it");
    const auto near = routing.rejected(0, 2);
    ASSERT_EQ(near.size(), 3u);
    EXPECT_EQ(near[2].way, "udp");
    EXPECT_EQ(near[2].text, "myrinet has priority");
    EXPECT_EQ(routing.rejected(0, 1).front().text, "shared memory is better");
    EXPECT_TRUE(routing.rejected(0, 0).empty());
}

TEST(Routing, a_network_on_which_nobody_answers_is_passed_over_in_that_direction_only) {
    const Cluster cluster = cluster_of(figure3);
    const Routing routing = routing_of(cluster, 12, Policy::pack(), {{0, 1, 0}});
    EXPECT_EQ(routing.text(routing.route(0, 2)), "U0");
    EXPECT_EQ(routing.text(routing.route(2, 0)), "M0");
    EXPECT_EQ(routing.rejected(0, 2)[1].text, "a1 does not answer on it");
}

/// Follows a message from relay to relay; answers the nodes it passes through.
std::vector<Node> way(const Routing& routing, Node from, Node to) {
    std::vector<Node> passed;
    for (Node at = from; at != to && passed.size() <= routing.nodes();) {
        const Route route = routing.route(at, to);
        if (route.kind == Route::Kind::none) return {};
        at = route.next;
        passed.push_back(at);
    }
    return passed;
}

TEST(Routing, hosts_without_a_common_network_are_joined_by_a_relay) {
    const Cluster cluster = cluster_of(R"(
        [[network]]
        name = "left"
        [[network]]
        name = "right"
        [[host]]
        name = "a"
        address.left = "10.0.0.1"
        [[host]]
        name = "gate"
        slots = 2
        address = { left = "10.0.0.2", right = "10.0.1.2" }
        [[host]]
        name = "b"
        address.right = "10.0.1.1"
    )");
    const Routing routing = routing_of(cluster, 4);
    EXPECT_EQ(routing.route(0, 3), (Route{Route::Kind::relayed, 0, 1, 2, 2}));
    EXPECT_EQ(routing.text(routing.route(0, 3)), ">L1");
    EXPECT_EQ(way(routing, 0, 3), (std::vector<Node>{2, 3}));
    EXPECT_EQ(way(routing, 3, 0), (std::vector<Node>{1, 0}));
    EXPECT_TRUE(separated(routing).empty());
    // A host that runs none of the job's nodes cannot help.
    EXPECT_EQ(separated(Routing(cluster, {{0, 0}, {2, 0}})), (std::vector<std::pair<Node, Node>>{{0, 1}, {1, 0}}));
}

TEST(Routing, a_ring_is_walked_the_shorter_way_round) {
    const Cluster cluster = cluster_of(R"(
        [[network]]
        name = "lan"
        topology = "ring"
        [[host]]
        name = "h[0-5]"
        address.lan = "10.0.0.[1-6]"
    )");
    const Routing routing = routing_of(cluster, 6);
    EXPECT_EQ(way(routing, 0, 2), (std::vector<Node>{1, 2}));
    EXPECT_EQ(way(routing, 0, 4), (std::vector<Node>{5, 4}));
    EXPECT_EQ(routing.route(0, 3).hops, 3u);
}

TEST(Routing, whatever_the_networks_a_relayed_message_comes_nearer_with_every_hop) {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](unsigned bound) { return static_cast<std::uint32_t>(random() % bound); };
        Cluster cluster;
        const std::uint32_t networks = 1 + below(5), hosts = 2 + below(9);
        for (std::uint32_t i = 0; i < networks; ++i) {
            cluster.networks.push_back({.name = fmt::format("n{}", i)});
            if (below(3) == 0) cluster.networks.back().topology = *Topology::parse(below(2) == 0 ? "ring" : "chain");
        }
        for (std::uint32_t i = 0; i < hosts; ++i) {
            cluster.hosts.push_back({.name = fmt::format("h{}", i), .slots = 1 + below(3), .addresses = {}});
            for (std::uint32_t k = 0; k < networks; ++k)
                cluster.hosts.back().addresses.push_back(below(3) == 0 ? "x" : "");
        }
        std::vector<Broken> broken;
        for (std::uint32_t i = below(6); i > 0; --i) broken.push_back({below(hosts), below(hosts), below(networks)});
        const auto nodes = static_cast<Node>(1 + below(static_cast<unsigned>(cluster.slots())));
        const Routing routing = routing_of(cluster, nodes, below(2) == 0 ? Policy::pack() : Policy::spread(), broken);
        for (Node from = 0; from < nodes; ++from)
            for (Node to = 0; to < nodes; ++to) {
                const Route route = routing.route(from, to);
                if (route.kind == Route::Kind::none || from == to) continue;
                std::uint32_t left = route.hops;
                Node at = from;
                for (; left > 0; --left) {
                    const Route step = routing.route(at, to);
                    ASSERT_EQ(step.hops, left) << "seed " << seed << ", " << from << " to " << to << " at " << at;
                    at = step.next;
                }
                ASSERT_EQ(at, to) << "seed " << seed;
            }
    }
}

/// Four hosts: a and b have no network in common, and two others could pass on between them.
constexpr std::string_view two_gates = R"(
    [[network]]
    name = "fast"
    [[network]]
    name = "slow"
    [[network]]
    name = "right"
    [[host]]
    name = "a"
    address = { fast = "10.0.0.1", slow = "10.0.1.1" }
    [[host]]
    name = "gate1"
    address = { slow = "10.0.1.2", right = "10.0.2.2" }
    [[host]]
    name = "gate2"
    address = { fast = "10.0.0.3", right = "10.0.2.3" }
    [[host]]
    name = "b"
    address.right = "10.0.2.4"
)";

TEST(Routing, of_two_relays_the_one_by_the_better_network_is_taken_and_of_equals_the_first) {
    const Routing routing = routing_of(cluster_of(two_gates), 4);
    EXPECT_EQ(routing.route(0, 3), (Route{Route::Kind::relayed, 0, 0, 2, 2}))
        << "the second gate is reached by the fast network";
    EXPECT_EQ(routing.route(3, 0), (Route{Route::Kind::relayed, 2, 0, 1, 2})) << "both are reached by the same network";
}

TEST(Routing, a_relay_is_as_near_as_can_be_and_reached_by_the_best_network_whatever_the_cluster) {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto below = [&](unsigned bound) { return static_cast<std::uint32_t>(random() % bound); };
        Cluster cluster;
        const std::uint32_t networks = 2 + below(5), hosts = 3 + below(8);
        for (std::uint32_t i = 0; i < networks; ++i) cluster.networks.push_back({.name = fmt::format("n{}", i)});
        for (std::uint32_t i = 0; i < hosts; ++i) {
            cluster.hosts.push_back({.name = fmt::format("h{}", i), .slots = 1, .addresses = {}});
            for (std::uint32_t k = 0; k < networks; ++k)
                cluster.hosts.back().addresses.push_back(below(3) == 0 ? "x" : "");
        }
        const Routing routing = routing_of(cluster, hosts);
        // The other way round than the code: by rounds over all hosts, forward.
        const auto best_network = [&](Node from, Node to) -> std::optional<NetworkIndex> {
            for (NetworkIndex network = 0; network < networks; ++network)
                if (routing.may_use(from, to, network)) return network;
            return std::nullopt;
        };
        constexpr std::uint32_t far = 1000;
        std::vector<std::uint32_t> distance(hosts * hosts, far);
        for (Node from = 0; from < hosts; ++from) distance[from * hosts + from] = 0;
        for (std::uint32_t round = 0; round < hosts; ++round)
            for (Node from = 0; from < hosts; ++from)
                for (Node via = 0; via < hosts; ++via)
                    for (Node to = 0; from != via && best_network(from, via) && to < hosts; ++to)
                        distance[from * hosts + to] =
                            std::min(distance[from * hosts + to], 1 + distance[via * hosts + to]);
        for (Node from = 0; from < hosts; ++from)
            for (Node to = 0; to < hosts; ++to) {
                if (from == to) continue;
                const Route route = routing.route(from, to);
                const std::uint32_t hops = distance[from * hosts + to];
                ASSERT_EQ(route.kind, hops >= far ? Route::Kind::none
                                      : hops == 1 ? Route::Kind::direct
                                                  : Route::Kind::relayed)
                    << from << " to " << to;
                if (hops >= far) continue;
                ASSERT_EQ(route.hops, hops);
                ASSERT_EQ(distance[route.next * hosts + to], hops - 1) << "the next hop is one nearer";
                ASSERT_EQ(route.network, *best_network(from, route.next));
                for (Node via = 0; via < hosts; ++via) {
                    if (via == from || distance[via * hosts + to] != hops - 1 || !best_network(from, via)) continue;
                    ASSERT_LE(route.network, *best_network(from, via))
                        << from << " to " << to << " would better go by " << via;
                }
            }
    }
}

TEST(Routing, nodes_of_a_relaying_host_share_the_destinations) {
    const Cluster cluster = cluster_of(R"(
        [[network]]
        name = "left"
        [[network]]
        name = "right"
        [[host]]
        name = "a"
        address.left = "10.0.0.1"
        [[host]]
        name = "gate"
        slots = 3
        address = { left = "10.0.0.2", right = "10.0.1.2" }
        [[host]]
        name = "b"
        slots = 4
        address.right = "10.0.1.1"
    )");
    const Routing routing = routing_of(cluster, 8);
    std::set<Node> relays;
    for (Node to = 4; to < 8; ++to) {
        const Route route = routing.route(0, to);
        EXPECT_EQ(route.next, 1 + to % 3);
        EXPECT_EQ(routing.placement()[route.next].slot, route.channel);
        relays.insert(route.next);
    }
    EXPECT_EQ(relays, (std::set<Node>{1, 2, 3}));
    EXPECT_EQ(routing.channels().by_network, (std::vector<std::uint32_t>{3, 4}));
}

TEST(Routing, a_network_that_joins_neighbours_only_is_rejected_for_others_with_the_reason) {
    const Cluster cluster = cluster_of(R"(
        [[network]]
        name = "ring"
        topology = "ring"
        [[network]]
        name = "lan"
        [[host]]
        name = "h[0-3]"
        address = { ring = "10.0.0.[1-4]", lan = "10.0.1.[1-4]" }
    )");
    const Routing routing = routing_of(cluster, 4);
    EXPECT_EQ(routing.text(routing.route(0, 1)), "R0");
    EXPECT_EQ(routing.text(routing.route(0, 2)), "L0");
    EXPECT_TRUE(routing.may_use(0, 1, 1));
    EXPECT_FALSE(routing.may_use(0, 2, 0));
    const auto rejected = routing.rejected(0, 2);
    ASSERT_EQ(rejected.size(), 2u);
    EXPECT_EQ(rejected[1].why, Rejected::Why::no_neighbours);
    EXPECT_EQ(rejected[1].text, "h0 and h2 are no neighbours in its ring");
}

TEST(Routing, pairs_that_are_decided_alike_are_counted_together_and_the_first_of_them_is_named) {
    std::mt19937 random(5);
    const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
    for (int round = 0; round < 200; ++round) {
        Cluster cluster;
        for (std::uint32_t network = 0; network < 1 + below(3); ++network) {
            cluster.networks.push_back(
                {.name = "n" + std::to_string(network), .letter = static_cast<char>('A' + network)});
            if (below(6) == 0) cluster.networks.back().topology = *Topology::parse("chain");
        }
        for (std::uint32_t host = 0; host < 2 + below(7); ++host) {
            cluster.hosts.push_back({.name = "h" + std::to_string(host), .slots = 1 + below(3), .addresses = {}});
            for (std::size_t network = 0; network < cluster.networks.size(); ++network)
                cluster.hosts.back().addresses.push_back(below(3) != 0 ? "10.0.0.1" : "");
        }
        std::vector<Broken> broken;
        if (below(4) == 0) broken.push_back({below(2), below(2), 0});
        const auto nodes = static_cast<std::uint32_t>(1 + below(static_cast<std::uint32_t>(cluster.slots())));
        const Routing routing = routing_of(cluster, nodes, below(2) == 0 ? Policy::pack() : Policy::spread(), broken);
        using Counted = std::map<std::string, std::tuple<Node, Node, std::uint64_t>>;
        Counted expected, counted;
        std::vector<std::uint32_t> channels(cluster.networks.size());
        for (Node from = 0; from < nodes; ++from)
            for (Node to = 0; to < nodes; ++to) {
                if (from == to) continue;
                ++std::get<2>(expected.try_emplace(decision(routing, from, to), from, to, 0).first->second);
                const Route route = routing.route(from, to);
                const bool has_channel = route.kind == Route::Kind::direct || route.kind == Route::Kind::relayed;
                if (has_channel) channels[route.network] = std::max(channels[route.network], route.channel + 1);
            }
        for (const Routing::Decided& one : routing.decisions())
            std::get<2>(counted.try_emplace(decision(routing, one.from, one.to), one.from, one.to, 0).first->second) +=
                one.pairs;
        EXPECT_EQ(counted, expected) << round;
        EXPECT_EQ(routing.channels().by_network, channels) << round;
    }
}

TEST(Routing, some_nodes_of_ten_thousand_hosts_cost_no_more_than_their_own_hosts) {
    Cluster cluster{.networks = {{.name = "lan"}, {.name = "fast"}}, .hosts = {}};
    for (int host = 0; host < 10'000; ++host)
        cluster.hosts.push_back({.name = "h", .slots = 1, .addresses = {"10.0.0.1", "10.1.0.1"}});
    for (const std::uint32_t nodes : {64u, 10'000u}) {
        const Routing routing = routing_of(cluster, nodes);
        EXPECT_EQ(routing.text(routing.route(0, nodes - 1)), "?0");
        ASSERT_EQ(routing.decisions().size(), 1u);
        EXPECT_EQ(routing.decisions()[0].pairs, std::uint64_t{nodes} * (nodes - 1));
    }
    // A case of its own each: still only those that have nodes.
    cluster.networks[0].topology = *Topology::parse("ring");
    EXPECT_EQ(routing_of(cluster, 64).decisions().size(), 64u * 63);
}

} // namespace
} // namespace kumi::cluster
