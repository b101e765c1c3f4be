// What group/topology.hpp promises. A topology depends on no world, so this runs once.

#include "kumi/group/topology.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace kumi::group_test {
namespace {

using group::Circle;
using group::Child;
using group::Pace;
using group::Set;
using group::Topology;
using pm::Node;

/// Up to two levels of nested domains.
Topology any_topology(std::mt19937_64& random, Node nodes) {
    std::vector<std::vector<std::uint32_t>> levels(random() % 3, std::vector<std::uint32_t>(nodes));
    for (Node node = 0; node < nodes; ++node)
        for (std::uint32_t domain = 0; auto& level : levels)
            level[node] = domain = domain * 3 + static_cast<std::uint32_t>(random() % 3);
    return Topology(levels);
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
    // Two clusters with networks of their own, two hosts without, and a network that joins all.
    constexpr std::uint32_t fast = 1, other_fast = 2, lan = 3;
    const std::vector<std::uint32_t> own{fast, fast, fast, other_fast, other_fast, lan, lan};
    std::vector<std::vector<std::uint32_t>> carriers(own.size(), std::vector<std::uint32_t>(own.size(), lan));
    for (std::size_t a = 0; a < own.size(); ++a)
        for (std::size_t b = 0; b < own.size(); ++b)
            if (own[a] == own[b]) carriers[a][b] = own[a];
    // Two nodes on each host but the last.
    const Topology topology = group::find_topology({0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12}, carriers);
    ASSERT_EQ(topology.levels(), 2u);
    const auto same = [&](std::size_t level, Node a, Node b) {
        return topology.domain(level, a) == topology.domain(level, b);
    };
    EXPECT_TRUE(same(0, 0, 5));
    EXPECT_TRUE(same(0, 6, 9));
    EXPECT_FALSE(same(0, 5, 6));
    EXPECT_FALSE(same(0, 9, 10));
    EXPECT_FALSE(same(0, 11, 12));
    EXPECT_TRUE(same(1, 2, 3));
    EXPECT_FALSE(same(1, 3, 4));
}

/// A message that every node passes on as it must.
struct Spread {
    const Topology& topology;
    Pace pace;
    Set reached = {};
    std::map<std::pair<std::size_t, std::uint32_t>, int> entries = {}; // by level and domain: from outside into it

    void pass_on(const Set& part, Node self) {
        Set below;
        for (const Child& child : group::children_of(part, self, topology, pace)) {
            EXPECT_TRUE(child.part.contains(child.to));
            EXPECT_TRUE((child.part & below).empty()) << "parts do not overlap";
            below |= child.part;
            EXPECT_FALSE(reached.contains(child.to)) << "once";
            reached.add(child.to);
            for (std::size_t level = 0; level < topology.levels(); ++level)
                if (const auto domain = topology.domain(level, child.to); domain != topology.domain(level, self))
                    ++entries[{level, domain}];
            pass_on(child.part, child.to);
        }
        EXPECT_EQ(below, part - Set{self}) << "their parts and this node are all of it";
    }
};

TEST(TopologyPromise, a_message_reaches_each_member_once_and_enters_each_domain_once) {
    std::mt19937_64 random(4711);
    for (int round = 0; round < 400; ++round) {
        const auto nodes = static_cast<Node>(1 + random() % 40);
        const Topology topology = any_topology(random, nodes);
        const Set set = any_set(random, nodes);
        const auto master = static_cast<Node>(random() % nodes); // a member or not
        Spread message{topology, round % 2 == 0 ? Pace{} : Pace{0.3, 1}};
        message.pass_on(set, master);
        EXPECT_EQ(message.reached, set - Set{master});
        decltype(message.entries) expected;
        for (std::size_t level = 0; level < topology.levels(); ++level)
            for (const Node node : set)
                if (const auto domain = topology.domain(level, node); domain != topology.domain(level, master))
                    expected[{level, domain}] = 1;
        EXPECT_EQ(message.entries, expected) << "from node " << master << " to " << set.text();
    }
}

TEST(TopologyPromise, circles_agree_at_all_members_and_the_first_is_the_one_that_brings_the_blocks) {
    std::mt19937_64 random(815);
    for (int round = 0; round < 200; ++round) {
        const auto nodes = static_cast<Node>(1 + random() % 40);
        const Topology topology = any_topology(random, nodes);
        Set set = any_set(random, nodes);
        if (set.empty()) set.add(0);
        const Node root = set.at(static_cast<Node>(random() % set.size()));
        for (const Node self : set) {
            const auto circles = group::circles_of(set, root, self, topology);
            EXPECT_TRUE(self == root || !circles.empty()) << "node " << self << " of " << set.text();
            for (std::size_t i = 0; i < circles.size(); ++i) {
                ASSERT_LT(circles[i].rank, circles[i].members.size());
                EXPECT_EQ(circles[i].members[circles[i].rank], self);
                EXPECT_EQ(circles[i].rank == 0, self == root || i > 0);
                for (const Node other : circles[i].members)
                    EXPECT_TRUE(std::ranges::any_of(
                        group::circles_of(set, root, other, topology),
                        [&](const Circle& theirs) { return theirs.members == circles[i].members; }))
                        << "nodes " << self << " and " << other << " of " << set.text();
            }
        }
    }
}

} // namespace
} // namespace kumi::group_test
