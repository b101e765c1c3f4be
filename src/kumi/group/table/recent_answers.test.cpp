#include "kumi/group/table/recent_answers.hpp"

#include <gtest/gtest.h>

namespace kumi::group {
namespace {

std::vector<std::byte> answer(std::size_t bytes, int value = 0) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

TEST(RecentAnswers, the_oldest_is_forgotten_when_there_are_too_many) {
    RecentAnswers<int> kept(3, 1000);
    for (const int key : {9, 1, 5, 2}) kept.put(key, answer(1, key));
    EXPECT_EQ(kept.find(9), nullptr);
    for (const int key : {1, 5, 2}) {
        ASSERT_NE(kept.find(key), nullptr);
        EXPECT_EQ(*kept.find(key), answer(1, key));
    }
}

TEST(RecentAnswers, or_too_many_bytes) {
    RecentAnswers<int> kept(100, 10);
    kept.put(1, answer(4));
    kept.put(2, answer(4));
    kept.put(3, answer(6));
    EXPECT_EQ(kept.find(1), nullptr);
    EXPECT_NE(kept.find(2), nullptr);
    EXPECT_NE(kept.find(3), nullptr);
    kept.put(4, answer(11)); // more than all may take
    for (const int key : {2, 3, 4}) EXPECT_EQ(kept.find(key), nullptr);
    kept.put(5, answer(10));
    EXPECT_NE(kept.find(5), nullptr);
}

TEST(RecentAnswers, the_first_answer_stands) {
    RecentAnswers<int> kept(2, 10);
    kept.put(1, answer(3, 1));
    kept.put(1, answer(5, 2));
    EXPECT_EQ(*kept.find(1), answer(3, 1));
    kept.put(2, answer(7)); // fits, for what did not stand takes nothing
    EXPECT_NE(kept.find(1), nullptr);
    EXPECT_NE(kept.find(2), nullptr);
}

} // namespace
} // namespace kumi::group
