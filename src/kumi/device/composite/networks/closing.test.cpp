#include "kumi/device/composite/networks/closing.hpp"

#include "composite/one_node.hpp"

#include <cstring>
#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

TEST(Leaving, a_relay_stays_until_those_whom_it_served_are_done) {
    OneNode node(OneNode::by_both());
    EXPECT_FALSE(node.networks.is_relaying());
    node.networks.set_served({1});
    EXPECT_TRUE(node.networks.is_relaying());
    node.networks.begin_close();
    const auto asked = [&](Duration time) {
        node.pass(time);
        node.networks.go_on(node.clock);
        return given_to(node.first.take(), Kind::leaving);
    };
    EXPECT_EQ(asked(10ms), std::vector<Node>{11});
    EXPECT_EQ(asked(200ms), std::vector<Node>{});
    EXPECT_EQ(asked(1ms), std::vector<Node>{11}) << "the question may have been lost";
    node.hear(OneNode::head(Kind::done, 2));
    EXPECT_TRUE(node.networks.is_relaying()) << "that was another one";
    node.hear(OneNode::head(Kind::done, 1));
    EXPECT_FALSE(node.networks.is_relaying());
    EXPECT_EQ(asked(300ms), std::vector<Node>{});
}

TEST(Leaving, who_has_passed_on_a_message_is_a_relay_too) {
    OneNode node(OneNode::by_both());
    node.hear_bytes(letter_to_pass(40));
    EXPECT_TRUE(node.networks.is_relaying());
    node.first.gone = node.second.gone = {11};
    EXPECT_FALSE(node.networks.is_relaying()) << "its source is lost";
}

TEST(Leaving, a_relay_is_let_go_when_this_node_leaves_and_all_of_its_own_has_arrived) {
    OneNode node(OneNode::by_relay());
    ASSERT_TRUE(node.send(2, "a"));
    node.hear(OneNode::head(Kind::leaving, 1));
    const auto let_go = [&] {
        node.pass(10ms);
        node.networks.go_on(node.clock);
        return given_to(node.first.take(), Kind::done);
    };
    EXPECT_EQ(let_go(), std::vector<Node>{}) << "this node may send more";
    node.networks.begin_close();
    EXPECT_EQ(let_go(), std::vector<Node>{}) << "something is under way";
    node.hear(OneNode::head(Kind::arrived, 2, 1));
    EXPECT_FALSE(node.networks.have_all_arrived()) << "the relay waits for an answer";
    EXPECT_EQ(let_go(), std::vector<Node>{11});
    EXPECT_TRUE(node.networks.have_all_arrived());
    EXPECT_EQ(let_go(), std::vector<Node>{}) << "once";
}

TEST(Leaving, a_node_that_is_reached_through_others_is_told_once_that_this_one_takes_no_more) {
    OneNode node(OneNode::by_relay());
    ASSERT_TRUE(node.send(2, "a"));
    node.networks.begin_close();
    const auto told = [&] {
        node.pass(10ms);
        node.networks.go_on(node.clock);
        std::vector<Node> to;
        for (const auto& one : node.first.take())
            if (one.head().kind == Kind::closed) to.push_back(one.head().destination);
        return to;
    };
    EXPECT_EQ(told(), std::vector<Node>{}) << "the message is still under way";
    EXPECT_FALSE(node.networks.have_all_arrived());
    node.hear(OneNode::head(Kind::arrived, 2, 1));
    EXPECT_FALSE(node.networks.have_all_arrived()) << "it is to be told";
    EXPECT_EQ(told(), std::vector<Node>{2}) << "node 1 is told by its device";
    EXPECT_TRUE(node.networks.have_all_arrived());
    EXPECT_EQ(told(), std::vector<Node>{}) << "once";
}

TEST(Leaving, a_relay_is_let_go_after_it_was_given_what_tells_of_the_end) {
    OneNode node(OneNode::by_relay());
    node.hear(OneNode::head(Kind::leaving, 1));
    node.first.room = 0;
    node.networks.begin_close();
    node.pass(10ms);
    EXPECT_FALSE(node.networks.have_all_arrived());
    node.first.room = 10;
    node.networks.go_on(node.clock);
    node.pass(10ms);
    node.networks.go_on(node.clock);
    std::vector<Kind> given;
    for (const auto& one : node.first.take()) given.push_back(one.head().kind);
    EXPECT_EQ(given, (std::vector<Kind>{Kind::closed, Kind::done}));
    EXPECT_TRUE(node.networks.have_all_arrived());
}

TEST(Leaving, a_node_that_stays_as_a_relay_tells_all_that_it_takes_no_more_and_others_tell_nobody) {
    for (const bool stays : {false, true}) {
        OneNode node(OneNode::by_both());
        if (stays) node.networks.set_served({1});
        node.networks.begin_close();
        node.networks.go_on(node.clock);
        const auto told = given_to(node.first.take(), Kind::closed);
        EXPECT_EQ(std::set<Node>(told.begin(), told.end()), stays ? (std::set<Node>{11, 12, 13}) : std::set<Node>{});
    }
}

TEST(Leaving, a_node_that_waits_for_a_slow_peer_tells_those_that_have_all) {
    OneNode node(OneNode::by_relay());
    ASSERT_TRUE(node.send(2, "a")); // it does not arrive
    node.networks.begin_close();
    const auto told = [&](Duration time) {
        node.pass(time);
        node.networks.go_on(node.clock);
        return given_to(node.first.take(), Kind::closed);
    };
    EXPECT_EQ(told(10ms), std::vector<Node>{});
    EXPECT_EQ(told(90ms), std::vector<Node>{}) << "most nodes are done by then";
    EXPECT_EQ(told(10ms), std::vector<Node>{11});
    EXPECT_EQ(told(100ms), std::vector<Node>{}) << "once";
}

TEST(Leaving, nothing_has_arrived_before_the_device_says_so) {
    OneNode node(OneNode::by_both());
    ASSERT_TRUE(node.send(1, "a"));
    node.first.arrived = false;
    EXPECT_FALSE(node.networks.have_all_arrived());
    node.networks.give_up_unused();
    EXPECT_TRUE(node.first.given_up.empty()) << "this way is used";
    node.first.arrived = true;
    EXPECT_TRUE(node.networks.have_all_arrived());
    node.second.arrived = false; // a question that was never answered
    EXPECT_TRUE(node.networks.have_all_arrived());
    node.networks.give_up_unused();
    EXPECT_EQ(node.second.given_up, (std::set<Node>{11, 12, 13}));
}

} // namespace
} // namespace kumi::device::composite
