#include "kumi/group/answers/held_answers.hpp"

#include <gtest/gtest.h>
#include <tuple>

namespace kumi::group::held_answers_test {
namespace {

using Asked = HeldAnswers::Asked;
using Sent = std::vector<std::tuple<Name, std::uint64_t, std::size_t>>;
constexpr std::size_t bytes_max = 100, part_max = 40;

class HeldAnswersTest : public testing::Test {
protected:
    HeldAnswers held{bytes_max, part_max};

    static std::vector<std::byte> bytes(std::size_t count) { return std::vector<std::byte>(count, std::byte{5}); }
    Sent send(bool has_room = true) {
        Sent sent;
        const bool any = held.send([&](const Name& name, std::uint64_t offset, Bytes part) {
            if (has_room) sent.emplace_back(name, offset, part.size());
            return has_room;
        });
        EXPECT_EQ(any, !sent.empty());
        return sent;
    }
};

TEST_F(HeldAnswersTest, an_answer_goes_in_parts_each_of_which_is_asked_for) {
    const Name name{1, 7};
    EXPECT_TRUE(held.add(name, bytes(90)));
    EXPECT_EQ(send(), Sent{});
    for (const std::uint64_t offset : {0u, 40u, 80u}) {
        EXPECT_FALSE(held.has_asked());
        EXPECT_EQ(held.ask(name, offset), Asked::sound);
        EXPECT_TRUE(held.has_asked());
        EXPECT_EQ(send(false), Sent{}) << "it is still asked for";
        EXPECT_EQ(send(), (Sent{{name, offset, offset == 80 ? 10 : 40}}));
        EXPECT_EQ(send(), Sent{});
    }
    EXPECT_EQ(held.size(), 0u) << "it goes with its last part";
    EXPECT_EQ(held.ask(name, 90), Asked::gone);
}

TEST_F(HeldAnswersTest, another_part_than_the_next_one_or_the_same_one_twice_makes_no_sense) {
    const Name name{1, 7};
    EXPECT_TRUE(held.add(name, bytes(90)));
    EXPECT_EQ(held.ask(name, 40), Asked::unsound);
    EXPECT_EQ(held.ask(name, 0), Asked::sound);
    EXPECT_EQ(held.ask(name, 0), Asked::unsound);
    EXPECT_EQ(send().size(), 1u) << "one part, once";
    EXPECT_EQ(held.ask(name, 0), Asked::unsound);
    EXPECT_EQ(held.ask({1, 8}, 0), Asked::gone);
}

TEST_F(HeldAnswersTest, all_for_one_master_take_no_more_than_they_may) {
    EXPECT_FALSE(held.add({1, 1}, bytes(bytes_max + 1)));
    EXPECT_TRUE(held.add({1, 1}, bytes(bytes_max - 1)));
    EXPECT_TRUE(held.add({1, 2}, bytes(1)));
    EXPECT_FALSE(held.add({1, 3}, bytes(1)));
    EXPECT_TRUE(held.add({2, 3}, bytes(bytes_max))) << "another master";
    EXPECT_EQ(held.take({1, 1})->size(), bytes_max - 1);
    EXPECT_FALSE(held.take({1, 1}));
    EXPECT_TRUE(held.add({1, 3}, bytes(1)));
}

TEST_F(HeldAnswersTest, one_that_is_not_wanted_goes_and_is_not_kept_if_it_comes_later) {
    const Name name{1, 7}, later{1, 8};
    EXPECT_TRUE(held.add(name, bytes(90)));
    EXPECT_EQ(held.ask(name, 0), Asked::sound);
    held.drop(name);
    EXPECT_EQ(held.size(), 0u);
    EXPECT_FALSE(held.has_asked());
    held.drop(later);
    EXPECT_TRUE(held.add(later, bytes(90)));
    EXPECT_EQ(held.size(), 0u);
    EXPECT_TRUE(held.add(name, bytes(90)));
    EXPECT_EQ(held.size(), 1u) << "it was here when it was dropped, so nothing is remembered of that";
    EXPECT_EQ(held.take(name)->size(), 90u);
    for (std::uint64_t i = 0; i <= HeldAnswers::unwanted_max; ++i) held.drop({1, 100 + i});
    EXPECT_TRUE(held.add({1, 100}, bytes(1)));
    EXPECT_EQ(held.size(), 1u) << "the oldest word is forgotten";
    EXPECT_TRUE(held.add({1, 101}, bytes(1)));
    EXPECT_EQ(held.size(), 1u);
}

TEST_F(HeldAnswersTest, with_a_master_all_that_was_for_it_goes) {
    EXPECT_TRUE(held.add({1, 7}, bytes(10)));
    EXPECT_TRUE(held.add({2, 7}, bytes(10)));
    EXPECT_TRUE(held.add({2, 8}, bytes(10)));
    EXPECT_TRUE(held.add({3, 0}, bytes(10)));
    EXPECT_EQ(held.ask({2, 8}, 0), Asked::sound);
    held.drop_all_of(2);
    EXPECT_EQ(held.size(), 2u);
    EXPECT_FALSE(held.has_asked());
    EXPECT_EQ(held.ask({1, 7}, 0), Asked::sound);
    EXPECT_EQ(held.ask({3, 0}, 0), Asked::sound);
    EXPECT_EQ(send().size(), 2u);
}

} // namespace
} // namespace kumi::group::held_answers_test
