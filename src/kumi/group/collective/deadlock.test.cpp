#include "kumi/group/collective/deadlock.hpp"

#include <gtest/gtest.h>

namespace kumi::group {
namespace {

TEST(Deadlock, a_wait_is_real_if_the_answer_is_for_this_state_and_the_other_member_is_blocked) {
    Deadlock self;
    EXPECT_FALSE(self.add_wait(0, {1, 5})) << "this member is not blocked";
    self.block(3);
    EXPECT_FALSE(self.add_wait(2, {1, 5})) << "it has moved since it asked";
    EXPECT_FALSE(self.add_wait(3, {1, 0})) << "the other member is not blocked";
    EXPECT_TRUE(self.waits().empty());
    EXPECT_TRUE(self.add_wait(3, {1, 5}));
    EXPECT_FALSE(self.add_wait(3, {1, 5})) << "known";
    EXPECT_TRUE(self.add_wait(3, {1, 6})) << "the other member has moved, and is blocked again";
    EXPECT_TRUE(self.add_wait(3, {2, 6}));
    EXPECT_EQ(self.waits(), (std::vector<Deadlock::Member>{{1, 6}, {2, 6}}));
    self.move();
    EXPECT_FALSE(self.add_wait(3, {4, 1}));
    EXPECT_FALSE(self.add_wait(0, {4, 1}));
    self.block(4);
    EXPECT_TRUE(self.waits().empty()) << "a new state knows nothing";
}

TEST(Deadlock, a_chase_goes_on_once_and_only_from_the_state_that_it_was_sent_to) {
    constexpr std::size_t many = 100;
    Deadlock self;
    EXPECT_FALSE(self.add_chase(0, {{7, 1}, 2}, many)) << "this member is not blocked";
    self.block(3);
    EXPECT_FALSE(self.add_chase(2, {{7, 1}, 2}, many)) << "it has moved since it said that it is blocked";
    EXPECT_TRUE(self.add_chase(3, {{7, 1}, 2}, many));
    EXPECT_FALSE(self.add_chase(3, {{7, 1}, 2}, many)) << "it has come before";
    EXPECT_TRUE(self.add_chase(3, {{7, 1}, 3}, many)) << "along another wait of the beginner's";
    EXPECT_TRUE(self.add_chase(3, {{7, 2}, 2}, many)) << "in another state of the beginner's";
    EXPECT_TRUE(self.add_chase(3, {{8, 1}, 2}, many));
    EXPECT_EQ(self.chases().size(), 4u);
    EXPECT_FALSE(self.add_chase(3, {{9, 1}, 2}, 4)) << "there are as many as may be";
    EXPECT_TRUE(self.add_chase(3, {{9, 1}, 2}, 5));
    self.move();
    EXPECT_FALSE(self.add_chase(3, {{9, 9}, 2}, many));
    self.block(5);
    EXPECT_TRUE(self.chases().empty());
}

} // namespace
} // namespace kumi::group
