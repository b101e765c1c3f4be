#include "kumi/group/mail/inbox.hpp"

#include <gtest/gtest.h>

namespace kumi::group::inbox_test {
namespace {

using State = Sending::State;

Receive from(Node node, bool is_bound = false, bool is_done = false) {
    return {.from = node, .step = 0, .target = nullptr, .bytes = 0, .is_bound = is_bound, .is_done = is_done};
}
Sending to(Node node, State state) { return {node, 0, state, {}, 0}; }

TEST(Inbox, the_next_message_that_is_awaited_is_the_first_that_is_not_done) {
    Inbox inbox;
    inbox.receives = {from(1, true, true), from(2), from(1, true), from(1)};
    EXPECT_EQ(inbox.find_receive(1), &inbox.receives[2]);
    EXPECT_EQ(inbox.find_receive(2), &inbox.receives[1]);
    EXPECT_EQ(inbox.find_receive(3), nullptr);
}

TEST(Inbox, a_call_waits_for_a_node_that_must_allow_it_to_send_or_has_not_begun_to_send) {
    Inbox inbox;
    EXPECT_FALSE(inbox.is_waiting_for(1));
    inbox.receives = {from(1, true), from(2)};
    EXPECT_FALSE(inbox.is_waiting_for(1)) << "it has begun to come";
    EXPECT_TRUE(inbox.is_waiting_for(2));
    inbox.sendings = {to(2, State::fresh), to(2, State::asked), to(3, State::asked)};
    EXPECT_FALSE(inbox.is_waiting_for(2)) << "the first message to it can go on";
    EXPECT_TRUE(inbox.is_waiting_for(3));
}

TEST(Inbox, a_call_is_blocked_when_all_that_is_left_needs_others) {
    Inbox inbox;
    EXPECT_FALSE(inbox.is_blocked()) << "nothing is left";
    inbox.receives = {from(1, true)};
    EXPECT_FALSE(inbox.is_blocked());
    inbox.receives.push_back(from(2));
    EXPECT_TRUE(inbox.is_blocked());
    inbox.sendings = {to(3, State::asked), to(3, State::fresh)};
    EXPECT_TRUE(inbox.is_blocked()) << "the second waits behind the first";
    inbox.sendings.push_back(to(4, State::eager));
    EXPECT_FALSE(inbox.is_blocked());
}

TEST(Inbox, a_call_needs_the_nodes_that_it_still_receives_from_or_sends_to) {
    Inbox inbox;
    inbox.receives = {from(1, true, true), from(2, true), from(3)};
    inbox.sendings = {to(4, State::fresh)};
    EXPECT_FALSE(inbox.needs(1)) << "all of it has come";
    for (const Node node : {2u, 3u, 4u}) EXPECT_TRUE(inbox.needs(node));
    EXPECT_FALSE(inbox.needs(5));
    EXPECT_EQ(inbox.find_needed([](Node node) { return node != 2; }), 3u) << "the first of them";
    EXPECT_EQ(inbox.find_needed([](Node node) { return node > 3; }), 4u);
    EXPECT_EQ(inbox.find_needed([](Node node) { return node == 1; }), std::nullopt);
}

TEST(Inbox, a_message_may_go_unless_the_first_one_to_its_node_must_be_allowed) {
    Inbox inbox;
    EXPECT_FALSE(inbox.has_unsent());
    inbox.sendings = {to(3, State::asked), to(3, State::fresh)};
    EXPECT_FALSE(inbox.has_unsent());
    inbox.sendings.push_back(to(4, State::cleared));
    EXPECT_TRUE(inbox.has_unsent());
}

} // namespace
} // namespace kumi::group::inbox_test
