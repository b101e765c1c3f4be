// held_mutexes.test.cpp has borrowed turns.

#include "kumi/engine/sending/waiting_send.hpp"

#include "loopback/victim.hpp"

#include <gtest/gtest.h>

namespace kumi::engine::waiting_send_test {
namespace {

using loopback::Victim;

/// A message to node 1 whose tries and keeps are counted.
struct Sending {
    Victim victim;
    WaitingSend sending{*victim.dispatcher, 1};
    int tried = 0, kept = 0;
    bool has_room = false, is_taken = true;

    bool is_over(const Turn& turn) {
        return sending.is_over(
            turn, [&] { return ++tried, has_room; }, [&] { return ++kept, is_taken; });
    }
    bool is_over() { return is_over(victim.dispatcher->take_turn()); }
};

TEST(WaitingSend, a_thread_waits_until_the_message_was_sent_and_sends_it_once) {
    Sending message;
    EXPECT_FALSE(message.is_over());
    EXPECT_FALSE(message.is_over());
    message.has_room = true;
    EXPECT_TRUE(message.is_over());
    EXPECT_EQ(message.tried, 3);
    EXPECT_TRUE(message.is_over()) << "asked again";
    EXPECT_EQ(message.tried, 3);
    EXPECT_EQ(message.kept, 0);
    EXPECT_TRUE(message.sending.result());
}

TEST(WaitingSend, a_thread_that_runs_a_handler_does_not_wait) {
    Sending message;
    const Turn outer = message.victim.dispatcher->take_turn();
    EXPECT_TRUE(message.is_over());
    EXPECT_EQ(message.kept, 1);
    EXPECT_TRUE(message.sending.result());
    EXPECT_TRUE(message.is_over());
    EXPECT_EQ(message.kept, 1) << "it was kept";
}

TEST(WaitingSend, what_goes_to_a_lost_node_is_an_error) {
    Sending message;
    message.victim.channel.lose(1);
    EXPECT_TRUE(message.is_over());
    const auto outcome = message.sending.result();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), ErrorCode::node_lost);
    EXPECT_NE(outcome.error().text().find("node 1"), std::string::npos);
    EXPECT_EQ(message.kept, 0);
}

TEST(WaitingSend, what_the_outbox_does_not_take_is_an_error) {
    Sending message;
    message.is_taken = false;
    const Turn outer = message.victim.dispatcher->take_turn();
    EXPECT_TRUE(message.is_over());
    EXPECT_FALSE(message.sending.result());
}

} // namespace
} // namespace kumi::engine::waiting_send_test
