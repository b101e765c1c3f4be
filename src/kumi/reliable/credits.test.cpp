#include "kumi/reliable/credits.hpp"

#include <gtest/gtest.h>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

constexpr Instant opening = Instant{} + 1h;
constexpr std::uint32_t any = 1u << 30;

TEST(Credits, an_own_part_holds_two_packets_whatever_the_number_of_peers) {
    EXPECT_EQ(CreditPool::own_part(1 << 20, 4, 512), (1u << 20) / 8);
    EXPECT_EQ(CreditPool::own_part(1 << 20, 10'000, 512), 2 * weight_of(512));
}

TEST(Credits, a_peer_has_its_own_part_before_it_has_sent_anything) {
    CreditPool pool(100'000, 5, 10'000, any);
    for (Node peer = 0; peer < 5; ++peer) EXPECT_EQ(pool.exposure(peer), 10'000u);
    EXPECT_EQ(pool.exposure_of_all(), 50'000u);
}

TEST(Credits, one_that_sends_alone_is_lent_all_that_there_is) {
    CreditPool pool(100'000, 5, 10'000, any);
    pool.on_consumed(1, 5'000, opening);
    EXPECT_EQ(pool.growth(1), 55'000u);
    EXPECT_EQ(pool.grant(1), 65'000u);
    EXPECT_EQ(pool.exposure(1), 60'000u);
    EXPECT_EQ(pool.growth(1), 0u);
    EXPECT_EQ(pool.exposure_of_all(), 100'000u);
}

TEST(Credits, several_that_send_share_and_never_get_more_than_there_is) {
    CreditPool pool(100'000, 5, 10'000, any);
    for (int round = 0; round < 100; ++round)
        for (Node peer = 0; peer < 5; ++peer) {
            pool.on_consumed(peer, 3'000, opening + round * 1ms);
            pool.grant(peer);
            ASSERT_LE(pool.exposure_of_all(), 100'000u);
        }
    for (Node peer = 0; peer < 5; ++peer) EXPECT_GE(pool.exposure(peer), 17'000u) << "fair";
}

TEST(Credits, no_peer_gets_more_than_a_peer_may) {
    CreditPool pool(100'000, 2, 10'000, 20'000);
    pool.on_consumed(0, 1'000, opening);
    pool.grant(0);
    EXPECT_EQ(pool.exposure(0), 20'000u);
}

TEST(Credits, a_loan_ends_when_its_peer_is_quiet) {
    CreditPool pool(100'000, 2, 10'000, any);
    pool.on_consumed(0, 1'000, opening);
    pool.grant(0);
    for (int i = 1; i <= 10; ++i) pool.on_consumed(1, 1'000, opening + i * 40ms);
    EXPECT_EQ(pool.exposure(0), 10'000u);
    pool.grant(1);
    EXPECT_EQ(pool.exposure(1), 90'000u);
}

TEST(Credits, loans_do_not_end_because_this_node_was_stopped) {
    CreditPool pool(100'000, 2, 10'000, any);
    for (int i = 0; i < 3; ++i) {
        pool.on_consumed(0, 1'000, opening + i * 1ms);
        pool.on_consumed(1, 1'000, opening + i * 1ms);
    }
    pool.grant(0);
    const std::uint32_t before = pool.exposure(0);
    pool.on_consumed(1, 1'000, opening + 1h);
    EXPECT_EQ(pool.exposure(0), before);
}

TEST(Credits, a_peer_that_overdraws_has_nothing_left_and_gets_its_part_again) {
    CreditPool pool(100'000, 2, 10'000, any);
    pool.on_consumed(0, 50'000, opening);
    EXPECT_EQ(pool.exposure(0), 0u);
    EXPECT_GE(pool.grant(0), 60'000u);
}

TEST(Credits, lines_wrap) {
    CreditPool pool(100'000, 2, 10'000, any, 0xFFFF'F000u);
    std::uint32_t last = pool.grant(0);
    for (int i = 0; i < 20; ++i) {
        pool.on_consumed(0, 1'000, opening);
        const std::uint32_t line = pool.grant(0);
        EXPECT_FALSE(is_before(line, last));
        EXPECT_LE(pool.exposure_of_all(), 100'000u);
        last = line;
    }
    EXPECT_LT(last, 1u << 20);
}

TEST(Credits, a_peer_that_starts_anew_has_its_own_part) {
    CreditPool pool(100'000, 2, 10'000, any);
    pool.on_consumed(0, 5'000, opening);
    pool.grant(0);
    pool.reset(0);
    EXPECT_EQ(pool.exposure(0), 10'000u);
    EXPECT_EQ(pool.exposure_of_all(), 20'000u);
}

} // namespace
} // namespace kumi::reliable
