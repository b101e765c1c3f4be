#include "kumi/group/choice.hpp"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

namespace kumi::group {
namespace {

// As measured on a simulated Cray XC30.
constexpr Costs costs{.overhead_us = 0.2, .latency_us = 1.2, .us_per_byte = 0.0001};

/// The first size that does not go down a tree.
std::size_t crossover(std::uint32_t members, const Costs& of) {
    std::size_t bytes = 256;
    while (bytes < (1u << 24) && choose(bytes, members, of).way == Way::tree) bytes += 256;
    return bytes;
}

TEST(Choice, small_messages_go_down_a_tree_and_large_ones_in_blocks) {
    for (const std::uint32_t members : {3u, 4u, 8u, 64u, 256u, 1000u, 100'000u}) {
        SCOPED_TRACE(members);
        for (const std::size_t bytes : {0u, 1u, 100u, 1000u, 2000u})
            EXPECT_EQ(choose(bytes, members, costs).way, Way::tree);
        for (const std::size_t bytes : {1u << 18, 1u << 20, 8u << 20})
            EXPECT_EQ(choose(bytes, members, costs).way, Way::circulant);
    }
    const std::size_t bytes = crossover(64, costs);
    EXPECT_GE(bytes, 4u * 1024);
    EXPECT_LE(bytes, 32u * 1024);
}

TEST(Choice, what_is_larger_than_a_message_that_goes_in_blocks_goes_in_blocks) {
    for (const std::uint32_t members : {3u, 5u, 8u, 16u, 64u, 100u, 256u, 1000u}) {
        SCOPED_TRACE(members);
        const std::size_t first = crossover(members, costs);
        for (std::size_t bytes = first + first / 2; bytes < (1u << 26); bytes += bytes / 2)
            ASSERT_EQ(choose(bytes, members, costs).way, Way::circulant) << bytes;
    }
}

TEST(Choice, more_bytes_or_members_never_take_less_time) {
    for (const std::uint32_t members : {2u, 3u, 8u, 64u, 257u}) {
        double before = 0;
        for (std::size_t bytes = 1; bytes < (1u << 26); bytes += 1 + bytes / 3) {
            const double now = choose(bytes, members, costs).expected_us;
            ASSERT_GE(now, before) << bytes << " bytes to " << members;
            before = now;
        }
    }
    for (const std::size_t bytes : {0u, 1000u, 10'000u, 100'000u, 10'000'000u}) {
        double before = 0;
        for (std::uint32_t members = 1; members < 3000; members += 1 + members / 10) {
            const double now = choose(bytes, members, costs).expected_us;
            ASSERT_GE(now, before) << bytes << " bytes to " << members;
            before = now;
        }
    }
}

TEST(Choice, one_or_two_members_need_no_blocks) {
    for (const std::size_t bytes : {0u, 1000u, 100'000u, 100'000'000u}) {
        EXPECT_EQ(choose(bytes, 0, costs).way, Way::tree);
        EXPECT_EQ(choose(bytes, 1, costs).way, Way::tree);
        EXPECT_EQ(choose(bytes, 1, costs).expected_us, 0);
        EXPECT_EQ(choose(bytes, 2, costs).way, Way::tree);
    }
    EXPECT_DOUBLE_EQ(choose(10'000, 2, costs).expected_us, 2.2);
}

TEST(Choice, blocks_are_powers_of_two_near_the_best) {
    for (const std::uint32_t members : {8u, 64u, 256u})
        for (const std::size_t bytes : {81'920u, 1u << 20, 8u << 20}) {
            const Choice choice = choose(bytes, members, costs);
            ASSERT_EQ(choice.way, Way::circulant);
            EXPECT_TRUE(std::has_single_bit(choice.block_bytes));
            EXPECT_GE(choice.block_bytes, 1024u);
            EXPECT_LE(choice.block_bytes, 64u * 1024);
            // Blocks of any size could not do better than this.
            const double n = static_cast<double>(bytes) * costs.us_per_byte;
            const double log2 = std::bit_width(members - 1);
            const double best = std::pow(std::sqrt((log2 - 1) * costs.latency_us) + std::sqrt(n), 2);
            EXPECT_GE(choice.expected_us, best * 0.999);
            EXPECT_LE(choice.expected_us, best * 1.1) << bytes << " bytes to " << members;
        }
    EXPECT_EQ(choose(std::size_t{1} << 34, 8, costs).block_bytes, 64u * 1024);
}

TEST(Choice, a_tree_is_paced_by_its_message_and_answers_by_none) {
    EXPECT_EQ(choose(1000, 8, costs).pace, (Pace{0.2 + 1000 * 0.0001, 1.2 + 1000 * 0.0001}));
    EXPECT_EQ(choose(1'000'000, 8, costs).pace, (Pace{0.2, 1.2}));
    EXPECT_EQ(choose(1000, 8, costs).block_bytes, 0u);
}

TEST(Choice, where_messages_take_longer_blocks_pay_later) {
    Costs slow = costs;
    slow.latency_us = 4.4;
    EXPECT_GT(crossover(64, slow), crossover(64, costs));
}

TEST(Choice, has_a_text) {
    EXPECT_EQ(text_of(choose(10, 64, costs)), "tree");
    Choice blocks;
    blocks.way = Way::circulant;
    blocks.block_bytes = 4096;
    EXPECT_EQ(text_of(blocks), "circulant, blocks of 4 KiB");
}

} // namespace
} // namespace kumi::group
