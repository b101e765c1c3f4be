#include "kumi/group/plan/choice.hpp"

#include <algorithm>
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
        for (const std::size_t bytes : {0u, 1u, 100u, 1000u, 4096u})
            EXPECT_EQ(choose(bytes, members, costs).way, Way::tree);
        for (const std::size_t bytes : {1u << 15, 1u << 18, 1u << 20, 8u << 20})
            EXPECT_EQ(choose(bytes, members, costs).way, Way::circulant);
    }
}

TEST(Choice, is_what_was_best_in_simulation) {
    for (const std::uint32_t members : {8u, 16u, 32u})
        EXPECT_EQ(choose(8192, members, costs).way, Way::tree) << members;
    // Where a message takes longer, blocks pay later.
    const Costs slow{.overhead_us = 0.2, .latency_us = 4.4, .us_per_byte = 0.0001};
    for (const std::uint32_t members : {8u, 32u, 64u, 256u}) {
        EXPECT_EQ(choose(8192, members, slow).way, Way::tree) << members;
        EXPECT_GT(crossover(members, slow), crossover(members, costs)) << members;
    }
    // Blocks: the best of those that were tried.
    EXPECT_EQ(choose(81'920, 8, costs).block_bytes, 8192u);
    EXPECT_EQ(choose(81'920, 256, costs).block_bytes, 4096u);
    for (const std::uint32_t members : {8u, 64u})
        EXPECT_EQ(choose(8 << 20, members, costs).block_bytes, 32u * 1024) << members;
}

/// One way's time of last delivery there.
struct Seen {
    Way way;
    std::size_t bytes;
    std::uint32_t members;
    double us;
};

TEST(Choice, expects_what_was_seen_in_simulation) {
    for (const Seen& seen :
         {Seen{Way::tree, 1024, 8, 3.04}, Seen{Way::tree, 1024, 256, 6.86}, Seen{Way::tree, 8192, 8, 7.58},
          Seen{Way::tree, 8192, 256, 17.2}, Seen{Way::circulant, 8192, 8, 8.1}, Seen{Way::circulant, 8192, 256, 16.8},
          Seen{Way::circulant, 81'920, 8, 26.1}, Seen{Way::circulant, 81'920, 256, 38.5},
          Seen{Way::circulant, 8 << 20, 8, 908}, Seen{Way::circulant, 8 << 20, 64, 1040}}) {
        const double expected = choose(seen.bytes, seen.members, costs, seen.way).expected_us;
        EXPECT_NEAR(expected, seen.us, seen.us * 0.125)
            << name_of(seen.way) << ": " << seen.bytes << " bytes to " << seen.members;
    }
}

TEST(Choice, what_is_larger_than_a_message_that_goes_in_blocks_goes_in_blocks) {
    for (const std::uint32_t members : {3u, 5u, 8u, 16u, 64u, 100u, 256u, 1000u}) {
        SCOPED_TRACE(members);
        const std::size_t first = crossover(members, costs);
        for (std::size_t bytes = first + first / 2; bytes < (1u << 26); bytes += bytes / 2)
            ASSERT_EQ(choose(bytes, members, costs).way, Way::circulant) << bytes;
    }
}

TEST(Choice, no_way_takes_less_than_the_chosen_one) {
    for (const Costs& of : {costs, Costs{5, 20, 0.001}, Costs{1, 5, 0.0001}, Costs{0.1, 1000, 0.08}})
        for (const std::uint32_t members : {1u, 2u, 3u, 4u, 7u, 64u, 257u, 5000u})
            for (std::size_t bytes = 2000; bytes < (1u << 26); bytes *= 3) {
                const Choice choice = choose(bytes, members, of);
                for (std::size_t way = 0; way < way_names.size() && members > 2; ++way) {
                    const Choice other = choose(bytes, members, of, static_cast<Way>(way));
                    EXPECT_EQ(other.way, static_cast<Way>(way));
                    EXPECT_GE(other.expected_us, choice.expected_us)
                        << text_of(other) << " instead of " << text_of(choice);
                }
                EXPECT_EQ(choice, choose(bytes, members, of, choice.way));
            }
}

TEST(Choice, more_bytes_or_members_never_take_less_time) {
    for (std::size_t way = 0; way <= way_names.size(); ++way) {
        const auto only = way < way_names.size() ? std::optional(static_cast<Way>(way)) : std::nullopt;
        for (const std::uint32_t members : {2u, 3u, 8u, 64u, 257u}) {
            double before = 0;
            for (std::size_t bytes = 1; bytes < (1u << 26); bytes += 1 + bytes / 3) {
                const double now = choose(bytes, members, costs, only).expected_us;
                ASSERT_GE(now, before) << bytes << " bytes to " << members;
                before = now;
            }
        }
        for (const std::size_t bytes : {0u, 1000u, 10'000u, 100'000u, 10'000'000u}) {
            double before = 0;
            for (std::uint32_t members = 1; members < 3000; members += 1 + members / 10) {
                const double now = choose(bytes, members, costs, only).expected_us;
                ASSERT_GE(now, before) << bytes << " bytes to " << members;
                before = now;
            }
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

TEST(Choice, what_fits_into_one_block_goes_whole_however_slow_the_network_is) {
    const Costs slow{.overhead_us = 0.001, .latency_us = 0.002, .us_per_byte = 1};
    EXPECT_EQ(choose(1024, 1000, slow).way, Way::tree);
    EXPECT_NE(choose(1025, 1000, slow).way, Way::tree);
    EXPECT_EQ(choose(1 << 20, 2, slow).way, Way::tree);
    EXPECT_NE(choose(1 << 20, 3, slow).way, Way::tree);
}

TEST(Choice, blocks_of_every_size_are_tried) {
    EXPECT_EQ(choose(2000, 8, {.overhead_us = 1e-6, .latency_us = 1e-6, .us_per_byte = 1}, Way::circulant).block_bytes,
              1024u);
    EXPECT_EQ(
        choose(1 << 30, 8, {.overhead_us = 100, .latency_us = 100, .us_per_byte = 1e-6}, Way::circulant).block_bytes,
        64u * 1024);
}

TEST(Choice, blocks_are_neither_small_nor_large) {
    for (const Way way : {Way::circulant, Way::scatter_ring, Way::scatter_doubling})
        for (const std::uint32_t members : {0u, 1u, 2u, 3u, 8u, 256u, 1'000'000u})
            for (const std::size_t bytes :
                 {std::size_t{0}, std::size_t{1}, std::size_t{10'000}, std::size_t{1} << 20, std::size_t{1} << 34}) {
                const std::uint32_t block_bytes = choose(bytes, members, costs, way).block_bytes;
                EXPECT_GE(block_bytes, 1024u);
                EXPECT_LE(block_bytes, 64u * 1024);
            }
    // One for each member.
    EXPECT_EQ(choose(80'000, 8, costs, Way::scatter_ring).block_bytes, 10'048u);
}

TEST(Choice, a_tree_is_paced_by_its_message_and_answers_by_none) {
    EXPECT_EQ(choose(1000, 8, costs).pace, (Pace{0.2 + 1000 * 0.0001, 1.2 + 2.5 * 1000 * 0.0001}));
    EXPECT_EQ(choose(1'000'000, 8, costs).pace, (Pace{0.2, 1.2}));
    EXPECT_EQ(choose(1000, 8, costs, Way::binomial).pace, (Pace{1, 1}));
    EXPECT_EQ(choose(1000, 8, costs).block_bytes, 0u);
}

TEST(Choice, has_a_text) {
    EXPECT_EQ(text_of(choose(10, 64, costs)), "tree");
    EXPECT_EQ(text_of(choose(10, 64, costs, Way::binomial)), "binomial");
    EXPECT_EQ(text_of(choose(81'920, 8, costs)), "circulant, blocks of 8 KiB");
}

TEST(Way, has_a_name_by_which_it_is_found) {
    for (std::size_t way = 0; way < way_names.size(); ++way)
        EXPECT_EQ(way_named(name_of(static_cast<Way>(way))), static_cast<Way>(way));
    EXPECT_EQ(way_named("ring"), std::nullopt);
}

} // namespace
} // namespace kumi::group
