#include "kumi/group/plan/circulant.hpp"

#include <algorithm>
#include <bit>
#include <gtest/gtest.h>

namespace kumi::group {
namespace {

std::uint32_t log2_of(Node members) { return static_cast<std::uint32_t>(std::bit_width(members - 1)); }

/// All ranks, round by round.
void broadcast(const std::vector<Circulant>& ranks, std::uint32_t blocks) {
    const auto members = static_cast<Node>(ranks.size());
    const std::uint32_t rounds = ranks.front().rounds(blocks);
    ASSERT_EQ(rounds, members < 2 ? 0 : blocks - 1 + log2_of(members));
    constexpr std::uint32_t never = ~0u;
    std::vector<std::uint32_t> arrived(std::size_t{members} * blocks, never); // in which round, by rank and block
    const auto at = [&](Node rank, std::uint32_t block) -> std::uint32_t& {
        return arrived[std::size_t{rank} * blocks + block];
    };
    std::vector<std::uint32_t> first(members, never);

    for (std::uint32_t round = 0; round < rounds; ++round)
        for (Node rank = 0; rank < members; ++rank) {
            const Circulant::Step mine = ranks[rank].step(round, blocks);
            const Circulant::Step other = ranks[mine.to].step(round, blocks);
            ASSERT_EQ(other.from, rank);
            ASSERT_EQ(other.receive, mine.send) << "from " << rank << " to " << mine.to << " in round " << round;
            if (!mine.send) continue;
            ASSERT_LT(*mine.send, blocks);
            ASSERT_NE(mine.to, 0u);
            const bool has = rank == 0 || at(rank, *mine.send) < round;
            ASSERT_TRUE(has) << rank << " has no block " << *mine.send << " to send in round " << round;
            ASSERT_EQ(at(mine.to, *mine.send), never) << "twice";
            at(mine.to, *mine.send) = round;
            first[mine.to] = std::min(first[mine.to], round);
        }
    for (Node rank = 1; rank < members; ++rank) {
        for (std::uint32_t block = 0; block < blocks; ++block)
            ASSERT_NE(at(rank, block), never) << rank << ' ' << block;
        ASSERT_LT(first[rank], log2_of(members)) << "the first block came late to " << rank;
    }
}

void broadcasts(Node members, const std::vector<std::uint32_t>& block_counts) {
    SCOPED_TRACE(members);
    std::vector<Circulant> ranks;
    for (Node rank = 0; rank < members; ++rank) ranks.emplace_back(members, rank);
    for (const std::uint32_t blocks : block_counts) {
        SCOPED_TRACE(blocks);
        broadcast(ranks, blocks);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(Circulant, every_block_gets_everywhere_in_the_fewest_rounds) {
    for (Node members = 1; members <= 300 && !HasFailure(); ++members) {
        const std::uint32_t q = log2_of(members);
        broadcasts(members, {1, 2, 3, 5, std::max(q, 1u), 2 * q + 1});
    }
}

TEST(Circulant, also_among_many) {
    for (const Node members : {1000u, 1500u, 4096u, 4097u}) broadcasts(members, {1, 7, 2 * log2_of(members) + 1});
}

TEST(Circulant, the_root_sends_every_block_and_receives_none) {
    const Circulant root(100, 0);
    for (std::uint32_t round = 0; round < root.rounds(20); ++round) {
        const Circulant::Step step = root.step(round, 20);
        EXPECT_EQ(step.receive, std::nullopt);
        EXPECT_EQ(step.send, std::min(round, 19u));
    }
}

TEST(Circulant, two_send_each_other_nothing_but_the_blocks_in_order) {
    const Circulant root(2, 0);
    const Circulant other(2, 1);
    ASSERT_EQ(root.rounds(5), 5u);
    for (std::uint32_t round = 0; round < 5; ++round) {
        EXPECT_EQ(root.step(round, 5).send, round);
        EXPECT_EQ(other.step(round, 5).receive, round);
        EXPECT_EQ(other.step(round, 5).send, std::nullopt);
    }
}

TEST(Circulant, nobody_needs_rounds_for_nothing) {
    EXPECT_EQ(Circulant(1, 0).rounds(10), 0u);
    EXPECT_EQ(Circulant(10, 3).rounds(0), 0u);
}

TEST(Circulant, what_one_sends_another_expects_among_very_many) {
    for (const Node members : {100'003u, 1u << 31, (1u << 31) + 1, ~0u}) {
        for (const Node rank : {0u, 1u, members / 3, members / 2, members - 1}) {
            const Circulant mine(members, rank);
            for (std::uint32_t round = 0; round < mine.rounds(40); ++round) {
                const Circulant::Step step = mine.step(round, 40);
                const Circulant::Step other = Circulant(members, step.to).step(round, 40);
                ASSERT_EQ(other.from, rank);
                ASSERT_EQ(other.receive, step.send);
            }
        }
    }
}

} // namespace
} // namespace kumi::group
