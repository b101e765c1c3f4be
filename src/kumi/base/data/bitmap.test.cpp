#include "kumi/base/data/bitmap.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace kumi::base {
namespace {

TEST(Bitmap, ranges_cross_word_borders) {
    Bitmap bits(200);
    bits.set_range(60, 80);
    EXPECT_EQ(bits.count(), 80u);
    EXPECT_FALSE(bits.test(59));
    EXPECT_TRUE(bits.test(60));
    EXPECT_TRUE(bits.test(139));
    EXPECT_FALSE(bits.test(140));
    bits.clear_range(64, 64);
    EXPECT_EQ(bits.next_set(61), 61u);
    EXPECT_EQ(bits.next_set(64), 128u);
    EXPECT_EQ(bits.next_clear(60), 64u);
}

TEST(Bitmap, searching_past_the_end_answers_the_size) {
    Bitmap bits(70);
    EXPECT_EQ(bits.next_set(0), 70u);
    bits.set_range(0, 70);
    EXPECT_EQ(bits.next_clear(0), 70u);
    EXPECT_EQ(bits.find_clear_run(1), std::nullopt);
    EXPECT_EQ(Bitmap(0).next_clear(0), 0u);
}

TEST(Bitmap, the_first_long_enough_run_is_found) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 300; ++round) {
        Bitmap bits(1 + random() % 300);
        std::vector<bool> plain(bits.size());
        for (std::size_t i = 0; i < bits.size(); ++i)
            if (random() % 4 == 0) bits.set(i), plain[i] = true;
        const std::size_t wanted = 1 + random() % 12;
        std::optional<std::size_t> expected;
        for (std::size_t start = 0; start + wanted <= plain.size() && !expected; ++start) {
            bool clear = true;
            for (std::size_t i = start; i < start + wanted; ++i) clear = clear && !plain[i];
            if (clear) expected = start;
        }
        ASSERT_EQ(bits.find_clear_run(wanted), expected);
    }
}

TEST(Bitmap, is_what_a_list_of_bits_would_be_whatever_is_done_with_it) {
    std::mt19937 random(5);
    for (const std::size_t size : {1u, 63u, 64u, 65u, 128u, 200u}) {
        Bitmap bits(size);
        std::vector<bool> plain(size);
        for (int step = 0; step < 500; ++step) {
            const std::size_t first = random() % size, count = random() % (size - first + 1);
            switch (random() % 5) {
            case 0: bits.set(first), plain[first] = true; break;
            case 1: bits.clear(first), plain[first] = false; break;
            case 2:
                bits.set_range(first, count),
                    std::fill_n(plain.begin() + static_cast<std::ptrdiff_t>(first), count, true);
                break;
            case 3:
                bits.clear_range(first, count),
                    std::fill_n(plain.begin() + static_cast<std::ptrdiff_t>(first), count, false);
                break;
            case 4:
                if (random() % 10 == 0) bits.clear(), plain.assign(size, false);
                break;
            }
            for (std::size_t i = 0; i < size; ++i)
                ASSERT_EQ(bits.test(i), plain[i]) << "bit " << i << " of " << size << ", step " << step;
            const auto ones = static_cast<std::size_t>(std::count(plain.begin(), plain.end(), true));
            ASSERT_EQ(bits.count(), ones);
            ASSERT_EQ(bits.any(), ones != 0);
            const auto from = plain.begin() + static_cast<std::ptrdiff_t>(first);
            ASSERT_EQ(bits.next_set(first),
                      static_cast<std::size_t>(std::find(from, plain.end(), true) - plain.begin()));
            ASSERT_EQ(bits.next_clear(first),
                      static_cast<std::size_t>(std::find(from, plain.end(), false) - plain.begin()));
            ASSERT_EQ(bits.next_set(size), size);
        }
    }
}

TEST(Bitmap, a_run_that_just_fits_is_found_and_one_bit_more_is_not) {
    Bitmap bits(130);
    bits.set(0);
    EXPECT_EQ(bits.find_clear_run(129), 1u);
    EXPECT_EQ(bits.find_clear_run(130), std::nullopt);
    bits.set(64);
    EXPECT_EQ(bits.find_clear_run(63), 1u);
    EXPECT_EQ(bits.find_clear_run(65), 65u);
    EXPECT_EQ(bits.find_clear_run(66), std::nullopt);
}

TEST(Bitmap, the_ones_of_a_word_are_visited_from_the_lowest) {
    std::vector<unsigned> visited;
    for_each_bit(std::uint64_t{1} << 63 | 0b1001, [&](unsigned bit) { visited.push_back(bit); });
    EXPECT_EQ(visited, (std::vector<unsigned>{0, 3, 63}));
}

} // namespace
} // namespace kumi::base
