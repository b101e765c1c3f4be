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

} // namespace
} // namespace kumi::group
