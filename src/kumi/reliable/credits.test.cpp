#include "kumi/reliable/credits.hpp"

#include <gtest/gtest.h>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

constexpr Instant opening = Instant{} + 1h;
constexpr std::uint32_t any = 1u << 30;

TEST(Credits, an_own_part_holds_two_packets_whatever_the_number_of_peers) {
    EXPECT_EQ(CreditPool::guaranteed(1 << 20, 4, 512), (1u << 20) / 8);
    EXPECT_EQ(CreditPool::guaranteed(1 << 20, 10'000, 512), 2 * weight_of(512));
}

TEST(Credits, a_peer_has_its_own_part_before_it_has_sent_anything) {
    CreditPool pool(100'000, 5, 10'000, any);
    for (Node peer = 0; peer < 5; ++peer) EXPECT_EQ(pool.outstanding(peer), 10'000u);
    EXPECT_EQ(pool.outstanding_of_all(), 50'000u);
}

TEST(Credits, one_that_sends_alone_is_lent_all_that_there_is) {
    CreditPool pool(100'000, 5, 10'000, any);
    pool.on_consumed(1, 5'000, opening);
    EXPECT_EQ(pool.growth(1), 55'000u);
    EXPECT_EQ(pool.grant(1), 65'000u);
    EXPECT_EQ(pool.outstanding(1), 60'000u);
    EXPECT_EQ(pool.growth(1), 0u);
    EXPECT_EQ(pool.outstanding_of_all(), 100'000u);
}

TEST(Credits, several_that_send_share_and_never_get_more_than_there_is) {
    CreditPool pool(100'000, 5, 10'000, any);
    for (int round = 0; round < 100; ++round)
        for (Node peer = 0; peer < 5; ++peer) {
            pool.on_consumed(peer, 3'000, opening + round * 1ms);
            pool.grant(peer);
            ASSERT_LE(pool.outstanding_of_all(), 100'000u);
        }
    for (Node peer = 0; peer < 5; ++peer) EXPECT_GE(pool.outstanding(peer), 17'000u) << "fair";
}

TEST(Credits, no_peer_gets_more_than_a_peer_may) {
    CreditPool pool(100'000, 2, 10'000, 20'000);
    pool.on_consumed(0, 1'000, opening);
    pool.grant(0);
    EXPECT_EQ(pool.outstanding(0), 20'000u);
}

TEST(Credits, a_loan_ends_when_its_peer_is_quiet) {
    CreditPool pool(100'000, 2, 10'000, any);
    pool.on_consumed(0, 1'000, opening);
    pool.grant(0);
    for (int i = 1; i <= 10; ++i) pool.on_consumed(1, 1'000, opening + i * 40ms);
    EXPECT_EQ(pool.outstanding(0), 10'000u);
    pool.grant(1);
    EXPECT_EQ(pool.outstanding(1), 90'000u);
}

TEST(Credits, loans_do_not_end_because_this_node_was_stopped) {
    CreditPool pool(100'000, 2, 10'000, any);
    for (int i = 0; i < 3; ++i) {
        pool.on_consumed(0, 1'000, opening + i * 1ms);
        pool.on_consumed(1, 1'000, opening + i * 1ms);
    }
    pool.grant(0);
    const std::uint32_t before = pool.outstanding(0);
    pool.on_consumed(1, 1'000, opening + 1h);
    EXPECT_EQ(pool.outstanding(0), before);
}

TEST(Credits, a_peer_that_overdraws_has_nothing_left_and_gets_its_part_again) {
    CreditPool pool(100'000, 2, 10'000, any);
    pool.on_consumed(0, 50'000, opening);
    EXPECT_EQ(pool.outstanding(0), 0u);
    EXPECT_GE(pool.grant(0), 60'000u);
}

TEST(Credits, lines_wrap) {
    CreditPool pool(100'000, 2, 10'000, any, 0xFFFF'F000u);
    std::uint32_t last = pool.grant(0);
    for (int i = 0; i < 20; ++i) {
        pool.on_consumed(0, 1'000, opening);
        const std::uint32_t line = pool.grant(0);
        EXPECT_FALSE(is_before(line, last));
        EXPECT_LE(pool.outstanding_of_all(), 100'000u);
        last = line;
    }
    EXPECT_LT(last, 1u << 20);
}

TEST(Credits, a_peer_that_starts_anew_has_its_own_part) {
    CreditPool pool(100'000, 2, 10'000, any);
    pool.on_consumed(0, 5'000, opening);
    pool.grant(0);
    pool.reset(0);
    EXPECT_EQ(pool.outstanding(0), 10'000u);
    EXPECT_EQ(pool.outstanding_of_all(), 20'000u);
}

TEST(Credits, a_loan_lasts_200_ms_from_the_last_that_came_and_no_longer) {
    CreditPool pool(100'000, 2, 10'000, any);
    pool.on_consumed(1, 1'000, opening);
    pool.on_consumed(0, 1'000, opening);
    pool.grant(0);
    const std::uint32_t lent = pool.outstanding(0);
    ASSERT_EQ(lent, 10'000u + 80'000 / 2);
    // The others are looked at after 50 ms or more, at 51, 102, 153 and 204 ms.
    for (int ms = 51; ms <= 153; ms += 51) pool.on_consumed(1, 1, opening + std::chrono::milliseconds(ms));
    EXPECT_EQ(pool.outstanding(0), lent);
    pool.on_consumed(0, 1'000, opening + 157ms);
    pool.grant(0);
    pool.on_consumed(1, 1, opening + 204ms);
    pool.on_consumed(1, 1, opening + 255ms);
    pool.on_consumed(1, 1, opening + 306ms);
    EXPECT_EQ(pool.outstanding(0), lent) << "it has sent again, 149 ms ago";
    pool.on_consumed(1, 1, opening + 357ms);
    EXPECT_EQ(pool.outstanding(0), 10'000u);
}

TEST(Credits, what_a_peer_was_lent_before_it_started_anew_is_there_for_others) {
    CreditPool pool(100'000, 2, 10'000, any);
    pool.on_consumed(0, 1'000, opening);
    pool.grant(0);
    ASSERT_EQ(pool.outstanding(0), 90'000u);
    pool.on_consumed(1, 1'000, opening);
    EXPECT_EQ(pool.growth(1), 1'000u) << "only what is its own";
    pool.reset(0);
    pool.grant(1);
    EXPECT_EQ(pool.outstanding(1), 10'000u + 80'000 / 2) << "two are there that send";
}

TEST(Credits, a_peer_that_only_receives_is_lent_nothing) {
    CreditPool pool(100'000, 5, 10'000, any);
    for (const Node peer : {0u, 1u}) pool.grant(peer); // in what this node sends to it
    EXPECT_EQ(pool.outstanding(0), 10'000u);
    pool.on_consumed(2, 1'000, opening);
    pool.grant(2);
    EXPECT_EQ(pool.outstanding(2), 60'000u) << "there is nobody else who sends";
}

TEST(Credits, a_peer_has_no_more_than_its_share_and_what_others_have_not_been_lent) {
    CreditPool pool(100'000, 4, 10'000, any); // 60,000 to lend
    pool.on_consumed(0, 10'000, opening);
    pool.grant(0);
    EXPECT_EQ(pool.outstanding(0), 70'000u);
    pool.on_consumed(1, 10'000, opening);
    EXPECT_EQ(pool.share(), 40'000u);
    pool.grant(1);
    EXPECT_EQ(pool.outstanding(1), 10'000u) << "the first has it all";
    pool.on_consumed(0, 20'000, opening);
    EXPECT_EQ(pool.growth(0), 0u) << "it has more than its share";
    pool.grant(1);
    EXPECT_EQ(pool.outstanding(1), 30'000u);
    pool.on_consumed(0, 20'000, opening);
    pool.grant(1);
    EXPECT_EQ(pool.outstanding(1), 40'000u) << "its share";
}

TEST(Credits, whatever_peers_do_no_more_is_out_than_there_is_and_all_of_it_comes_back) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        std::uint64_t state = seed * 0x9E37'79B9'7F4A'7C15u;
        const auto below = [&](std::uint32_t bound) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            return static_cast<std::uint32_t>(state >> 20) % bound;
        };
        CreditPool pool(100'000, 5, 10'000, any, below(2) == 0 ? 0 : 0xFFFF'0000u);
        Instant now = opening;
        for (int step = 0; step < 1000; ++step) {
            const Node peer = below(5);
            now += std::chrono::milliseconds(below(100) == 0 ? below(1000) : below(10));
            const std::uint32_t outstanding = pool.outstanding(peer);
            const std::uint32_t action = below(100);
            if (action < 60) pool.on_consumed(peer, std::min(outstanding, below(8'000)), now);
            else if (action < 98) pool.grant(peer);
            else if (action < 99) pool.on_consumed(peer, outstanding + below(1'000), now); // overdraws
            else pool.reset(peer);
            ASSERT_LE(pool.outstanding_of_all(), 100'000u) << "seed " << seed << ", step " << step;
            ASSERT_LE(pool.outstanding(peer), 60'000u) << "seed " << seed << ", step " << step;
            if (action >= 60 && action < 98) {
                ASSERT_EQ(pool.growth(peer), 0u);
            }
        }
        for (int i = 0; i < 12; ++i)
            pool.on_consumed(0, std::min(pool.outstanding(0), 100u), now += 40ms); // the others are quiet
        pool.grant(0);
        EXPECT_EQ(pool.outstanding(0), 60'000u) << "seed " << seed;
    }
}

} // namespace
} // namespace kumi::reliable
