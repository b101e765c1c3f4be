#include "kumi/group/plan/scatter.hpp"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <random>

namespace kumi::group {
namespace {

using Ways = std::vector<Passing> (*)(Node, Node, std::uint32_t);

/// Ranks send in whatever order chance has them, each what it may. Every block must come to every rank, once, and none
/// to rank 0.
void spread(Ways way, Node members, std::uint32_t blocks, std::mt19937_64& random) {
    SCOPED_TRACE(testing::Message() << members << " members, " << blocks << " blocks");
    std::vector<std::vector<Passing>> plans;
    std::vector<std::vector<bool>> has(members, std::vector<bool>(blocks));
    for (Node rank = 0; rank < members; ++rank) plans.push_back(way(members, rank, blocks));
    has[0].assign(blocks, true);
    std::vector<std::size_t> next(members);
    std::vector<Node> able;
    while (true) {
        able.clear();
        for (Node rank = 0; rank < members; ++rank) {
            if (next[rank] == plans[rank].size()) continue;
            const Passing& passing = plans[rank][next[rank]];
            ASSERT_LT(passing.begin, passing.end);
            ASSERT_LE(passing.end, blocks);
            const auto at = has[rank].begin();
            if (std::all_of(at + passing.begin, at + passing.end, [](bool one) { return one; })) able.push_back(rank);
        }
        if (able.empty()) break;
        const Node rank = able[random() % able.size()];
        const Passing& passing = plans[rank][next[rank]++];
        ASSERT_LT(passing.to, members);
        ASSERT_NE(passing.to, 0u);
        for (std::uint32_t block = passing.begin; block < passing.end; ++block) {
            ASSERT_FALSE(has[passing.to][block]) << "block " << block << " comes twice to " << passing.to;
            has[passing.to][block] = true;
        }
    }
    for (Node rank = 0; rank < members; ++rank) {
        EXPECT_EQ(next[rank], plans[rank].size()) << rank << " waits for ever";
        EXPECT_EQ(std::ranges::count(has[rank], true), blocks) << rank;
    }
}

TEST(Scatter, every_block_gets_everywhere_once) {
    for (const Ways way : {scatter_ring, scatter_doubling})
        for (Node members = 1; members <= 40 && !HasFailure(); ++members) {
            std::mt19937_64 random(members);
            for (const std::uint32_t blocks : {1u, 2u, members - 1, members, members + 1, 3 * members + 2})
                if (blocks > 0) spread(way, members, blocks, random);
        }
}

TEST(Scatter, halves_go_first_and_then_parts_go_round) {
    EXPECT_EQ(scatter_ring(4, 0, 8), (std::vector<Passing>{{2, 4, 8}, {1, 2, 4}, {1, 0, 2}, {1, 6, 8}, {1, 4, 6}}));
    EXPECT_EQ(scatter_ring(4, 2, 8), (std::vector<Passing>{{3, 6, 8}, {3, 4, 6}, {3, 2, 4}, {3, 0, 2}}));
    EXPECT_EQ(scatter_ring(4, 3, 8), std::vector<Passing>{}); // the next one is rank 0, which has all
}

TEST(Scatter, what_a_rank_has_doubles_in_each_round) {
    EXPECT_EQ(scatter_doubling(4, 0, 8), (std::vector<Passing>{{2, 4, 8}, {1, 2, 4}, {1, 0, 2}, {2, 0, 4}}));
    EXPECT_EQ(scatter_doubling(4, 3, 8), (std::vector<Passing>{{1, 4, 8}}));
    // The scatter, and no more rounds than doubling takes; a run that goes past the last part is two.
    for (Node members = 2; members <= 100; ++members)
        for (Node rank = 0; rank < members; ++rank)
            EXPECT_LE(scatter_doubling(members, rank, 1000).size(),
                      3u * static_cast<std::size_t>(std::bit_width(members - 1)));
}

} // namespace
} // namespace kumi::group
