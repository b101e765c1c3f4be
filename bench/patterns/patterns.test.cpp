#include "patterns/patterns.hpp"

#include "patterns/work.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

namespace kumi::bench {
namespace {

TEST(Patterns, rows_are_named_by_pattern_size_and_place) {
    const auto rows = patterns_rows();
    EXPECT_EQ(rows.size(), 3 * 2 + 3 + 2 * 2 * 4 + 4 + 3 * 2 + 3 * 2u);
    EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), rows.size());
    for (const char* row : {"patterns.pairs.65536.4", "patterns.pingpongs.10.1", "patterns.incast.64.2.lab",
                            "patterns.barrier.16", "patterns.placement.8.2x2.lab", "patterns.multicasts.8192.4"})
        EXPECT_NE(std::find(rows.begin(), rows.end(), row), rows.end()) << row;
}

TEST(Patterns, what_a_node_sends_is_awaited_by_the_node_that_it_sends_to) {
    for (const auto& [what, nodes] : {std::pair{"pairs", 8}, std::pair{"incast", 3}}) {
        int flows = 0;
        for (int node = 0; node < nodes; ++node)
            if (const Flow flow = flow_of(what, node, nodes); flow.to != nobody) {
                const std::vector<int> from = flow_of(what, flow.to, nodes).from;
                EXPECT_EQ(std::count(from.begin(), from.end(), node), 1) << what << " " << node;
                ++flows;
            }
        EXPECT_EQ(flows, senders_of(what, nodes)) << what;
    }
}

TEST(Patterns, two_multicasts_overlap_in_at_least_half_of_the_nodes) {
    for (int one = 0; one < 4; ++one)
        for (int other = 0; other < one; ++other) {
            const std::vector<int> members = members_of(one, multicasts_nodes),
                                   others = members_of(other, multicasts_nodes);
            EXPECT_EQ(members.front(), one);
            EXPECT_GE(std::count_if(members.begin(), members.end(),
                                    [&](int node) { return std::count(others.begin(), others.end(), node) > 0; }),
                      multicasts_nodes / 2);
        }
}

} // namespace
} // namespace kumi::bench
