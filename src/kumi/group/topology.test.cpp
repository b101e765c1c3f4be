// Levels that a topology leaves out. What its header promises is tested in tests/promises/topology.cpp.

#include "kumi/group/topology.hpp"

#include <gtest/gtest.h>

namespace kumi::group {
namespace {

TEST(Topology, where_one_network_joins_all_hosts_there_are_no_clusters) {
    const std::vector<std::vector<std::uint32_t>> carriers(4, std::vector<std::uint32_t>(4, 3));
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

TEST(Topology, each_of_many_hosts_gets_a_message_by_one_of_its_nodes) {
    // Neighbours are on different hosts, so that no host is found by its neighbour.
    constexpr Node hosts = 100, nodes = 5 * hosts;
    std::vector<std::uint32_t> level;
    for (Node node = 0; node < nodes; ++node) level.push_back(node * 37 % hosts);
    const Topology topology({level});
    const Set all = Set::range(0, nodes);
    Set reached{0};
    std::vector<unsigned> entries(hosts); // messages that come to a host from another one
    const auto pass_on = [&](const auto& self, const Set& part, Node node) -> void {
        for (const Child& child : children_of(part, node, topology, {})) {
            EXPECT_TRUE(child.part.contains(child.to));
            EXPECT_FALSE(reached.contains(child.to)) << child.to;
            reached.add(child.to);
            if (level[child.to] != level[node]) ++entries[level[child.to]];
            self(self, child.part, child.to);
        }
    };
    pass_on(pass_on, all, 0);
    EXPECT_EQ(reached, all);
    for (Node host = 0; host < hosts; ++host) EXPECT_EQ(entries[host], host == level[0] ? 0u : 1u) << host;
}

} // namespace
} // namespace kumi::group
