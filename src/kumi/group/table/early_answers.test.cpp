#include "kumi/group/table/early_answers.hpp"

#include <gtest/gtest.h>

namespace kumi::group::early_answers_test {
namespace {

std::vector<std::byte> answer_of(std::size_t bytes, int value) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}
bool is_any(Node) { return true; }

TEST(EarlyAnswers, are_taken_once_by_multicast_and_node) {
    EarlyAnswers early(100);
    early.add({1, 1}, 5, answer_of(10, 1));
    early.add({1, 1}, 6, answer_of(10, 2));
    early.add({1, 1}, 6, answer_of(10, 3)); // a second one says nothing new
    early.add({2, 1}, 5, answer_of(10, 4));
    EXPECT_FALSE(early.take({1, 2}, is_any));
    const auto taken = early.take({1, 1}, [](Node node) { return node == 6; });
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->first, 6u);
    EXPECT_EQ(taken->second, answer_of(10, 2));
    EXPECT_FALSE(early.take({1, 1}, [](Node node) { return node == 6; }));
    EXPECT_TRUE(early.take({1, 1}, is_any));
    EXPECT_FALSE(early.take({1, 1}, is_any));
    EXPECT_TRUE(early.take({2, 1}, is_any));
}

TEST(EarlyAnswers, take_no_more_than_their_bytes_and_what_goes_makes_room) {
    EarlyAnswers early(20);
    early.add({1, 1}, 5, answer_of(12, 1));
    early.add({1, 1}, 6, answer_of(9, 1)); // too much
    EXPECT_FALSE(early.take({1, 1}, [](Node node) { return node == 6; }));
    early.add({1, 2}, 6, answer_of(8, 1));
    EXPECT_TRUE(early.take({1, 2}, is_any));
    early.drop({1, 1});
    early.drop({1, 7});
    early.add({1, 3}, 5, answer_of(20, 1));
    EXPECT_TRUE(early.take({1, 3}, is_any));
    early.add({1, 4}, 5, answer_of(20, 1));
    EXPECT_TRUE(early.take({1, 4}, is_any)) << "what was taken needs no room";
}

TEST(EarlyAnswers, are_found_by_their_master) {
    EarlyAnswers early(100);
    for (const Name name : {Name{1, 9}, Name{2, 3}, Name{2, 4}, Name{3, 1}}) early.add(name, 5, answer_of(1, 1));
    EXPECT_EQ(early.names_of(2), (std::vector<Name>{{2, 3}, {2, 4}}));
    EXPECT_TRUE(early.names_of(4).empty());
    std::size_t count = 0;
    early.each_name([&](const Name&) { ++count; });
    EXPECT_EQ(count, 4u);
    EXPECT_EQ(early.size(), 4u);
}

} // namespace
} // namespace kumi::group::early_answers_test
