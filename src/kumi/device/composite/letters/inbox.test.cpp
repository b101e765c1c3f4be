#include "kumi/device/composite/letters/inbox.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

pm::KeptMessage early_message(Sequence sequence) { return pm::KeptMessage(1, bytes_of(sequence)); }

TEST(Inbox, a_message_that_came_early_is_taken_at_its_turn_and_once) {
    Inbox inbox;
    for (const Sequence sequence : {2u, 1u, 4u}) inbox.keep(sequence, early_message(sequence));
    EXPECT_FALSE(inbox.take_early()) << "message 0 has not come";
    inbox.advance();
    for (const Sequence sequence : {1u, 2u}) {
        EXPECT_EQ(inbox.expected(), sequence);
        const auto message = inbox.take_early();
        ASSERT_TRUE(message);
        Sequence value = 0;
        EXPECT_TRUE(read_value(message->bytes(), value));
        EXPECT_EQ(value, sequence);
    }
    EXPECT_FALSE(inbox.take_early());
    EXPECT_TRUE(inbox.has_early());
}

TEST(Inbox, knows_what_has_come_and_what_cannot_come) {
    Inbox inbox;
    inbox.advance();
    inbox.keep(3, early_message(3));
    EXPECT_TRUE(inbox.has_come(0));
    EXPECT_FALSE(inbox.has_come(1));
    EXPECT_FALSE(inbox.has_come(2));
    EXPECT_TRUE(inbox.has_come(3));
    EXPECT_FALSE(inbox.has_come(1 + Inbox::early_max));
    EXPECT_TRUE(inbox.has_come(2 + Inbox::early_max));
    EXPECT_TRUE(inbox.has_come(static_cast<Sequence>(-1)));
}

TEST(Inbox, forgets_what_came_early_and_again_by_another_way) {
    Inbox inbox;
    inbox.keep(1, early_message(1));
    inbox.advance();
    inbox.advance(); // the other copy
    EXPECT_FALSE(inbox.take_early());
    EXPECT_FALSE(inbox.has_early());
}

} // namespace
} // namespace kumi::device::composite
