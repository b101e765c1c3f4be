// What group/topology.hpp promises. A topology depends on no world, so this runs once.

#include "kumi/group/topology.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace kumi::group_test {
namespace {

using group::Circle;
using group::Child;
using group::Pace;
using group::Set;
using group::Topology;
using pm::Node;

/// Some nodes in clusters of hosts, at random.
Topology any_topology(std::mt19937_64& random, Node nodes) {
    std::vector<std::uint32_t> hosts, clusters;
    for (Node node = 0; node < nodes; ++node) {
        hosts.push_back(static_cast<std::uint32_t>(random() % 6));
        clusters.push_back(hosts.back() / 3);
    }
    return Topology({clusters, hosts});
}

Set any_set(std::mt19937_64& random, Node nodes) {
    Set set;
    for (Node node = 0; node < nodes; ++node)
        if (random() % 3 != 0) set.add(node);
    return set;
}

TEST(TopologyPromise, without_levels_all_nodes_are_equally_near) {
    EXPECT_EQ(Topology().levels(), 0u);
    EXPECT_EQ(Topology({{0, 0, 0}}).levels(), 0u) << "a level that separates nothing is none";
}

TEST(TopologyPromise, levels_go_from_the_largest_domains_to_the_smallest) {
    const Topology topology({{0, 0, 0, 1}, {0, 0, 1, 2}});
    ASSERT_EQ(topology.levels(), 2u);
    EXPECT_EQ(topology.domain(0, 3), 1u);
    EXPECT_EQ(topology.domain(1, 2), 1u);
}

TEST(TopologyPromise, hosts_with_a_network_of_their_own_are_a_cluster) {
    // Nodes 0, 1 on a host, one each on three more. Network 7 joins hosts 0 and 1, network 8 joins hosts 2 and 3, and
    // network 1 joins all.
    const Topology topology = group::find_topology(
        {0, 0, 2, 3, 4}, {{7, 7, 1, 1}, {7, 7, 1, 1}, {1, 1, 8, 8}, {1, 1, 8, 8}});
    ASSERT_EQ(topology.levels(), 2u);
    EXPECT_EQ(topology.domain(0, 0), topology.domain(0, 2));
    EXPECT_EQ(topology.domain(0, 3), topology.domain(0, 4));
    EXPECT_NE(topology.domain(0, 0), topology.domain(0, 3));
    EXPECT_EQ(topology.domain(1, 0), topology.domain(1, 1));
    EXPECT_NE(topology.domain(1, 0), topology.domain(1, 2));
}

TEST(TopologyPromise, a_message_reaches_each_member_once_and_enters_each_domain_once) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 200; ++round) {
        const auto nodes = static_cast<Node>(1 + random() % 40);
        const Topology topology = any_topology(random, nodes);
        const Set set = any_set(random, nodes);
        const auto master = static_cast<Node>(random() % nodes);
        Set reached;
        std::vector<int> entries(64);
        const auto pass = [&](const auto& self_, const Set& part, Node self) -> void {
            Set below;
            for (const Child& child : group::children_of(part, self, topology, Pace{})) {
                EXPECT_TRUE(child.part.contains(child.to));
                EXPECT_TRUE((child.part & below).empty()) << "parts do not overlap";
                below |= child.part;
                EXPECT_FALSE(reached.contains(child.to));
                reached.add(child.to);
                for (std::size_t level = 0; level < topology.levels(); ++level)
                    if (topology.domain(level, child.to) != topology.domain(level, self))
                        ++entries[level * 8 + topology.domain(level, child.to)];
                self_(self_, child.part, child.to);
            }
            Set expected = part;
            expected.remove(self);
            EXPECT_EQ(below, expected) << "their parts and this node are all of it";
        };
        pass(pass, set, master);
        Set others = set;
        others.remove(master);
        EXPECT_EQ(reached, others);
        for (std::size_t level = 0; level < topology.levels(); ++level)
            for (std::size_t domain = 0; domain < 8; ++domain) EXPECT_LE(entries[level * 8 + domain], 1);
    }
}

TEST(TopologyPromise, circles_agree_at_all_members_and_the_first_is_the_one_that_brings_the_blocks) {
    std::mt19937_64 random(4);
    for (int round = 0; round < 200; ++round) {
        const auto nodes = static_cast<Node>(2 + random() % 30);
        const Topology topology = any_topology(random, nodes);
        Set set = any_set(random, nodes);
        if (set.empty()) set.add(0);
        const Node root = set.at(static_cast<Node>(random() % set.size()));
        Set fed; // by a circle in which they are not the first
        for (const Node self : set) {
            const auto circles = group::circles_of(set, root, self, topology);
            for (std::size_t i = 0; i < circles.size(); ++i) {
                ASSERT_LT(circles[i].rank, circles[i].members.size());
                EXPECT_EQ(circles[i].members[circles[i].rank], self);
                EXPECT_EQ(circles[i].rank == 0, self == root || i > 0);
                if (circles[i].rank != 0) fed.add(self);
            }
        }
        Set others = set;
        others.remove(root);
        EXPECT_EQ(fed, others) << "each but the root gets the blocks in one circle";
    }
}

} // namespace
} // namespace kumi::group_test
