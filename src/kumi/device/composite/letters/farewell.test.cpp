#include "kumi/device/composite/letters/farewell.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

TEST(Farewell, a_peer_that_is_served_is_asked_every_now_and_then_until_it_is_done) {
    Farewell farewell;
    Instant clock{1h};
    EXPECT_FALSE(farewell.needs_this_node());
    EXPECT_FALSE(farewell.asks(clock));
    farewell.set_served();
    EXPECT_TRUE(farewell.needs_this_node());
    EXPECT_TRUE(farewell.asks(clock));
    EXPECT_FALSE(farewell.asks(clock + Farewell::ask_every));
    clock += Farewell::ask_every + 1ns;
    EXPECT_TRUE(farewell.asks(clock));
    farewell.on_done();
    EXPECT_FALSE(farewell.needs_this_node());
    EXPECT_FALSE(farewell.asks(clock + 1h));
}

TEST(Farewell, each_question_of_the_peer_is_answered_once) {
    Farewell farewell;
    EXPECT_FALSE(farewell.take_question());
    farewell.on_leaving();
    EXPECT_TRUE(farewell.owes_answer());
    EXPECT_TRUE(farewell.take_question());
    EXPECT_FALSE(farewell.owes_answer());
    EXPECT_FALSE(farewell.take_question());
}

} // namespace
} // namespace kumi::device::composite
