#include "kumi/group/collective/call_failure.hpp"

#include "loopback/seat.hpp"

#include <gtest/gtest.h>

namespace kumi::group::call_failure_test {
namespace {

class CallFailureTest : public group_test::SeatTest {
protected:
    CallFailure failure{*seat};
};

TEST_F(CallFailureTest, a_member_is_told_once_and_in_few_words) {
    EXPECT_FALSE(failure.has_failed());
    failure.begin(turn, ErrorCode::timed_out, "why", std::string(1000, 'x'), 0);
    EXPECT_TRUE(failure.has_failed());
    EXPECT_EQ(failure.why(turn), "why");
    failure.tell(turn, 1, own);
    failure.tell(turn, 1, own);
    failure.tell_all(turn, own, 5);
    const auto told = sent();
    ASSERT_EQ(told.size(), 1u) << "there was no mismatch";
    EXPECT_EQ(told[0].to, 1u);
    const auto head = told[0].head<CollectiveHeader>();
    EXPECT_EQ(head.kind, MessageKind::trouble);
    EXPECT_EQ(head.serial, 3u);
    EXPECT_EQ(error_code_of(head.step), ErrorCode::timed_out);
    EXPECT_EQ(failure.code(turn), ErrorCode::timed_out);
    EXPECT_EQ(head.bytes, CallFailure::text_bytes_max);
    EXPECT_EQ(told[0].data<CollectiveHeader>().size(), CallFailure::text_bytes_max);
}

TEST_F(CallFailureTest, a_mismatch_is_told_to_all_and_known_from_then_on) {
    failure.begin(turn, ErrorCode::timed_out, "why", "told", 9);
    failure.tell_all(turn, own, 5);
    const auto told = sent();
    ASSERT_EQ(told.size(), 2u);
    for (const auto& message : told) {
        EXPECT_EQ(message.head<CollectiveHeader>().kind, MessageKind::mismatch);
        EXPECT_EQ(message.head<CollectiveHeader>().came_with, 9u);
        EXPECT_EQ(message.head<CollectiveHeader>().root, 5u);
    }
    EXPECT_TRUE(mailbox->mismatches(turn).contains(9));
    EXPECT_FALSE(mailbox->mismatches(turn).contains(8));
}

TEST_F(CallFailureTest, what_members_still_send_is_skipped_unless_they_are_over) {
    seat->box.heard = {{1, 5, false}, {2, 6, true}};
    failure.begin(turn, ErrorCode::timed_out, "why", "told", 0);
    failure.skip(turn, 1);
    failure.skip(turn, 1);
    failure.skip(turn, 2);
    failure.skip(turn, 0);
    ASSERT_EQ(seat->box.skips.size(), 2u);
    EXPECT_EQ(seat->box.skips[0].source, 1u);
    EXPECT_EQ(seat->box.skips[0].serial, 5u);
    EXPECT_EQ(seat->box.skips[1].source, 0u);
    EXPECT_FALSE(seat->box.skips[1].serial) << "nothing was heard of it";
}

} // namespace
} // namespace kumi::group::call_failure_test
