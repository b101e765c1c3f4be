#include "kumi/base/bitmap.hpp"

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

} // namespace
} // namespace kumi::base
