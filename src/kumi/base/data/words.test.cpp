#include "kumi/base/data/words.hpp"

#include <gtest/gtest.h>
#include <random>
#include <utility>
#include <vector>

namespace kumi::base {
namespace {

std::vector<std::uint64_t> list(const Words& words) { return {words.begin(), words.end()}; }

TEST(Words, are_what_a_vector_would_be_whatever_is_done_with_them) {
    std::mt19937_64 random(1);
    Words words;
    std::vector<std::uint64_t> expected;
    for (int i = 0; i < 20'000; ++i) {
        switch (random() % 6) {
        case 0: {
            const auto count = random() % 12;
            words.resize(count);
            expected.resize(count);
            break;
        }
        case 1: {
            const auto count = random() % 4;
            words.add_front(count);
            expected.insert(expected.begin(), count, 0);
            break;
        }
        case 2: {
            const auto count = random() % (expected.size() + 1);
            words.drop_front(count);
            expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(count));
            break;
        }
        case 3:
            if (!expected.empty()) words.front() = expected.front() = random();
            break;
        case 4:
            if (!expected.empty()) words.back() = expected.back() = random();
            break;
        case 5:
            if (expected.size() > 20) words = Words(), expected.clear();
            break;
        }
        ASSERT_EQ(list(words), expected) << "step " << i;
    }
}

TEST(Words, copies_are_apart_and_what_is_moved_goes_along) {
    for (const std::size_t count : {0u, 1u, 4u, 5u, 100u}) {
        Words words;
        words.resize(count);
        for (std::size_t i = 0; i < count; ++i) words[i] = i + 1;
        const auto expected = list(words);
        for (const std::size_t before : {0u, 3u, 50u}) {
            Words copy, moved;
            copy.resize(before);
            moved.resize(before);
            copy = words;
            EXPECT_TRUE(copy == words);
            if (count > 0) {
                copy.back() = 0;
                EXPECT_FALSE(copy == words);
            }
            Words again(words);
            moved = std::move(again);
            EXPECT_EQ(list(moved), expected);
            EXPECT_EQ(list(Words(std::move(moved))), expected);
            EXPECT_EQ(list(words), expected);
        }
    }
}

} // namespace
} // namespace kumi::base
