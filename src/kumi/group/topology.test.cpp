#include "kumi/group/topology.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace kumi::group {
namespace {

constexpr std::uint32_t fast = 1, other_fast = 2, lan = 3;

/// Two clusters with networks of their own, two hosts without, and a network that joins all.
std::vector<std::vector<std::uint32_t>> two_clusters() {
    const std::vector<std::uint32_t> own{fast, fast, fast, other_fast, other_fast, lan, lan};
    std::vector<std::vector<std::uint32_t>> carriers(own.size(), std::vector<std::uint32_t>(own.size(), lan));
    for (std::size_t a = 0; a < own.size(); ++a)
        for (std::size_t b = 0; b < own.size(); ++b)
            if (own[a] == own[b]) carriers[a][b] = own[a];
    return carriers;
}

TEST(Topology, hosts_with_a_network_of_their_own_are_a_cluster) {
    // Two nodes on each host but the last.
    const std::vector<Node> firsts{0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10, 10, 12};
    const Topology topology = find_topology(firsts, two_clusters());
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

TEST(Topology, where_one_network_joins_all_hosts_there_are_no_clusters) {
    const std::vector<std::vector<std::uint32_t>> carriers(4, std::vector<std::uint32_t>(4, lan));
    EXPECT_EQ(find_topology({0, 0, 2, 2, 4, 4, 6, 6}, carriers).levels(), 1u);
    EXPECT_EQ(find_topology({0, 1, 2, 3}, carriers).levels(), 0u); // one node each
    EXPECT_EQ(find_topology({0, 0, 0}, {}).levels(), 0u);
    EXPECT_EQ(find_topology({}, {}).levels(), 0u);
}

TEST(Topology, levels_that_tell_nothing_are_left_out) {
    EXPECT_EQ(Topology({{0, 0, 1, 1}, {0, 0, 1, 1}}).levels(), 1u); // the same again
    EXPECT_EQ(Topology({{7, 7, 7, 7}, {0, 0, 1, 1}}).levels(), 1u); // one domain
    EXPECT_EQ(Topology({{0, 0, 1, 1}, {0, 1, 2, 3}}).levels(), 1u); // a domain for each
    EXPECT_EQ(Topology({{0, 0, 1, 1}, {0, 1, 2, 2}}).levels(), 2u);
}

Topology random_topology(std::mt19937_64& random, Node nodes) {
    std::vector<std::vector<std::uint32_t>> levels(random() % 3, std::vector<std::uint32_t>(nodes));
    for (Node node = 0; node < nodes; ++node)
        for (std::uint32_t domain = 0; auto& level : levels)
            level[node] = domain = domain * 3 + static_cast<std::uint32_t>(random() % 3);
    return Topology(levels);
}

Set random_set(std::mt19937_64& random, Node nodes) {
    Set set{static_cast<Node>(random() % nodes)};
    for (Node node = 0; node < nodes; ++node)
        if (random() % 2 == 0) set.add(node);
    return set;
}

/// Passes a message on as everybody would; counts by level how often it leaves a domain.
void pass_on(const Set& part, Node self, const Topology& topology, std::multiset<Node>& reached,
             std::vector<std::size_t>& crossings) {
    reached.insert(self);
    crossings.resize(topology.levels());
    for (const Child& child : children_of(part, self, topology, {0.3, 1})) {
        EXPECT_TRUE(child.part.contains(child.to));
        for (std::size_t level = 0; level < topology.levels(); ++level)
            if (topology.domain(level, self) != topology.domain(level, child.to)) ++crossings[level];
        pass_on(child.part, child.to, topology, reached, crossings);
    }
}

TEST(Topology, a_tree_reaches_each_member_once_and_each_domain_once) {
    std::mt19937_64 random(4711);
    for (int round = 0; round < 200; ++round) {
        const Node nodes = static_cast<Node>(1 + random() % 40);
        const Topology topology = random_topology(random, nodes);
        const Set set = random_set(random, nodes);
        const Node root = set.at(static_cast<Node>(random() % set.size()));
        std::multiset<Node> reached;
        std::vector<std::size_t> crossings;
        pass_on(set, root, topology, reached, crossings);
        EXPECT_TRUE(std::ranges::equal(reached, set)) << set.text();
        for (std::size_t level = 0; level < topology.levels(); ++level) {
            std::set<std::uint32_t> domains;
            for (const Node node : set) domains.insert(topology.domain(level, node));
            EXPECT_EQ(crossings[level], domains.size() - 1) << "level " << level;
        }
    }
}

TEST(Topology, in_circles_each_member_but_the_root_gets_blocks_in_one_of_them) {
    std::mt19937_64 random(815);
    for (int round = 0; round < 200; ++round) {
        const Node nodes = static_cast<Node>(1 + random() % 40);
        const Topology topology = random_topology(random, nodes);
        const Set set = random_set(random, nodes);
        const Node root = set.at(static_cast<Node>(random() % set.size()));
        for (const Node self : set) {
            std::size_t gets = 0;
            for (const Circle& circle : circles_of(set, root, self, topology)) {
                ASSERT_LT(circle.rank, circle.members.size());
                EXPECT_EQ(circle.members[circle.rank], self);
                if (circle.rank != 0) ++gets;
                // All members see the same circle.
                for (const Node other : circle.members) {
                    const auto theirs = circles_of(set, root, other, topology);
                    EXPECT_TRUE(
                        std::ranges::any_of(theirs, [&](const Circle& one) { return one.members == circle.members; }));
                }
            }
            EXPECT_EQ(gets, self == root ? 0u : 1u) << "node " << self << " of " << set.text();
        }
    }
}

} // namespace
} // namespace kumi::group
