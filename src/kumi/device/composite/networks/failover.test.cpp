#include "kumi/device/composite/networks/failover.hpp"

#include "composite/one_node.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <string>

namespace kumi::device::composite {
namespace {

// ---- failover

/// Node 1 has owed an answer on the first link for long enough, and was asked on the second.
void suspect_first(OneNode& node) {
    ASSERT_TRUE(node.send(1, "a"));
    node.first.arrived = false;
    node.first.owed = 99ms;
    node.pass(10ms);
    EXPECT_TRUE(node.second.given.empty()) << "99 ms are not long";
    node.first.owed = 100ms;
    node.pass(1ms);
    EXPECT_EQ(given_to(node.second.take(), Kind::ping), std::vector<Node>{11});
    node.clock += 1ms;
}

Envelope pong_by(std::uint8_t way) {
    Envelope pong = OneNode::head(Kind::pong, 1);
    pong.sequence = way;
    return pong;
}

TEST(LeavingWays, a_peer_that_answers_elsewhere_and_not_here_30_ms_later_is_reached_by_the_other_way) {
    OneNode node(OneNode::by_both());
    suspect_first(node);
    node.hear(pong_by(1), {}, 1);
    node.first.unarrived = {OneNode::letter(OneNode::head(Kind::message, 0, 0), "a")};
    std::memcpy(node.first.unarrived[0].data() + 8, "\1\0\0\0", 4); // for node 1
    node.pass(29ms);
    EXPECT_EQ(node.networks.carrier(1), "first") << "it has the benefit of the doubt";
    node.pass(1ms);
    EXPECT_EQ(node.networks.carrier(1), "second");
    EXPECT_EQ(node.counted().failovers, 1u);
    EXPECT_EQ(node.counted().resent, 1u);
    const auto given = node.second.take();
    ASSERT_EQ(given_to(given, Kind::message), std::vector<Node>{11});
    EXPECT_EQ(given.back().body(), "a");
}

TEST(LeavingWays, a_peer_that_answers_here_meanwhile_is_not_left) {
    OneNode node(OneNode::by_both());
    suspect_first(node);
    node.hear(pong_by(1), {}, 1);
    node.first.owed = 0ms;
    for (int i = 0; i < 20; ++i) node.pass(10ms);
    EXPECT_EQ(node.networks.carrier(1), "first");
    EXPECT_EQ(node.counted().failovers, 0u);
}

TEST(LeavingWays, a_peer_that_answers_nowhere_is_waited_for) {
    OneNode node(OneNode::by_both());
    suspect_first(node);
    node.first.owed = 10s;
    node.second.arrived = false; // the question is still under way
    for (int i = 0; i < 500; ++i) node.pass(10ms);
    EXPECT_EQ(node.networks.carrier(1), "first");
    EXPECT_TRUE(node.second.given.empty()) << "one question is enough while it is under way";
    node.second.arrived = true;
    node.pass(10ms);
    EXPECT_EQ(given_to(node.second.take(), Kind::ping), std::vector<Node>{11}) << "it has arrived, and no answer has";
}

TEST(LeavingWays, an_answer_from_before_the_doubt_does_not_count) {
    OneNode node(OneNode::by_both());
    suspect_first(node);
    node.hear(pong_by(1), {}, 1);
    node.first.owed = 0ms;
    node.pass(10ms);
    node.first.owed = 100ms; // and again
    node.pass(10ms);
    node.pass(40ms);
    EXPECT_EQ(node.networks.carrier(1), "first");
    EXPECT_EQ(given_to(node.second.take(), Kind::ping), std::vector<Node>{11}) << "it is asked anew";
}

TEST(LeavingWays, answers_that_nobody_asked_for_and_of_ways_that_there_are_not_are_dropped) {
    OneNode node(OneNode::by_both());
    suspect_first(node);
    for (const std::uint8_t way : {std::uint8_t{2}, std::uint8_t{255}, std::uint8_t{0}}) node.hear(pong_by(way), {}, 1);
    for (int i = 0; i < 20; ++i) node.pass(10ms);
    EXPECT_EQ(node.networks.carrier(1), "first");
    node.hear(pong_by(1), {}, 1);
    node.pass(30ms);
    EXPECT_EQ(node.networks.carrier(1), "second");
}

TEST(LeavingWays, what_has_not_arrived_is_sent_by_the_next_way_before_anything_new_and_nothing_else_is) {
    OneNode node(OneNode::by_both());
    const auto own = [](Kind kind, Sequence sequence, Node to, std::string_view body) {
        Envelope head = OneNode::head(kind, 0, sequence);
        head.destination = to;
        return OneNode::letter(head, body);
    };
    ASSERT_TRUE(node.send(1, "a") && node.send(1, "b"));
    Envelope of_another = OneNode::head(Kind::message, 3, 4);
    of_another.destination = 1;
    node.first.unarrived = {own(Kind::message, 0, 1, "a"), own(Kind::ping, 0, 1, ""), own(Kind::message, 1, 1, "b"),
                            OneNode::letter(of_another, "passed"), std::vector<std::byte>(3)};
    node.first.arrived = false;
    node.second.room = 2; // for the news that the first link is down, and one letter
    node.first.up = false;
    node.networks.on_interfaces_changed(node.clock);
    EXPECT_FALSE(node.send(1, "c")) << "others wait";
    node.second.room = 100;
    node.networks.go_on(node.clock);
    EXPECT_TRUE(node.send(1, "c"));
    std::string bodies, passed;
    for (const auto& given : node.second.take())
        if (given.head().kind == Kind::message && given.to == 11)
            (given.head().source == 0 ? bodies : passed) += given.body() + ' ';
    EXPECT_EQ(bodies, "a b c ");
    EXPECT_EQ(passed, "passed ");
    EXPECT_EQ(node.counted().resent, 2u);
}

TEST(LeavingWays, a_link_without_a_carrier_is_left_at_once_and_all_are_told) {
    OneNode node(OneNode::by_both());
    node.first.up = false;
    node.networks.on_interfaces_changed(node.clock);
    for (const Node to : {1u, 2u, 3u}) EXPECT_EQ(node.networks.carrier(to), "second");
    auto given = node.second.take();
    EXPECT_EQ(given_to(given, Kind::deaf), (std::vector<Node>{11, 12, 13}));
    EXPECT_EQ(given[0].head().sequence, 7u) << "the network's number";
    node.networks.on_interfaces_changed(node.clock);
    EXPECT_EQ(given_to(node.second.take(), Kind::deaf), std::vector<Node>{}) << "nothing has changed";
    node.first.up = true;
    node.networks.on_interfaces_changed(node.clock);
    EXPECT_EQ(given_to(node.second.take(), Kind::hears), (std::vector<Node>{11, 12, 13}));
}

TEST(LeavingWays, of_news_that_found_no_room_only_the_last_is_told) {
    OneNode node(OneNode::one_by_both());
    node.second.room = 0;
    for (const bool is_up : {false, true, false}) {
        node.first.up = is_up;
        node.networks.on_interfaces_changed(node.clock);
    }
    node.second.room = 10;
    node.networks.go_on(node.clock);
    const auto given = node.second.take();
    EXPECT_EQ(given_to(given, Kind::deaf), std::vector<Node>{11});
    EXPECT_EQ(given_to(given, Kind::hears), std::vector<Node>{});
}

TEST(LeavingWays, a_network_on_which_the_peer_is_deaf_is_left_and_others_are_not) {
    OneNode node(OneNode::by_both());
    node.hear(OneNode::head(Kind::deaf, 1, 9)); // a network that this node is not on
    EXPECT_EQ(node.networks.carrier(1), "first");
    node.hear(OneNode::head(Kind::deaf, 1, 7), {}, 1);
    EXPECT_EQ(node.networks.carrier(1), "second");
    EXPECT_EQ(node.networks.carrier(2), "first") << "node 2 did not say so";
}

TEST(LeavingWays, a_way_on_which_nobody_listens_is_left_and_not_waited_for) {
    OneNode node(OneNode::by_both());
    ASSERT_TRUE(node.send(1, "a"));
    node.first.gone = {11};
    node.pass(10ms);
    EXPECT_EQ(node.networks.carrier(1), "second");
    EXPECT_EQ(node.first.given_up, std::set<Node>{11});
    EXPECT_FALSE(node.networks.lost(1));
}

TEST(LeavingWays, nobody_has_to_wake_up_while_nothing_is_to_be_found_out) {
    OneNode node(OneNode::one_by_both());
    node.pass(10ms);
    EXPECT_EQ(node.networks.next_tick(), never);
    ASSERT_TRUE(node.send(1, "a"));
    node.first.arrived = false;
    EXPECT_EQ(node.networks.next_tick(), node.clock + 10ms);
    node.pass(10ms);
    EXPECT_EQ(node.networks.next_tick(), node.clock + 10ms) << "it has not arrived";
    node.first.arrived = true;
    node.pass(10ms);
    EXPECT_EQ(node.networks.next_tick(), never);
    node.first.up = false;
    node.networks.on_interfaces_changed(node.clock);
    EXPECT_NE(node.networks.next_tick(), never) << "a better way is looked for";
}

TEST(LeavingWays, a_message_that_a_link_refuses_has_its_way_looked_at) {
    OneNode node(OneNode::one_by_both());
    node.first.room = 0;
    EXPECT_FALSE(node.send(1, "a"));
    EXPECT_NE(node.networks.next_tick(), never);
    node.first.gone = {11};
    node.pass(10ms);
    EXPECT_TRUE(node.send(1, "a"));
    EXPECT_EQ(given_to(node.second.take(), Kind::message), std::vector<Node>{11});
}

TEST(LeavingWays, who_asks_by_which_link_a_message_goes_is_told_of_the_relays) {
    OneNode direct(OneNode::one_by_both()), relayed(OneNode::by_relay());
    EXPECT_EQ(direct.networks.link_to(1), 0);
    direct.first.up = false;
    direct.networks.on_interfaces_changed(direct.clock);
    EXPECT_EQ(direct.networks.link_to(1), 1);
    EXPECT_EQ(relayed.networks.link_to(2), 0);
    EXPECT_EQ(relayed.networks.carrier(2), "node 1");
}

// ---- going back

/// Node 1 is reached by the second link, and the first works again.
void leave_and_repair_first(OneNode& node) {
    ASSERT_TRUE(node.send(1, "a"));
    node.first.up = false;
    node.networks.on_interfaces_changed(node.clock);
    ASSERT_EQ(node.networks.carrier(1), "second");
    node.first.take();
    node.first.up = true;
    node.networks.on_interfaces_changed(node.clock);
    ASSERT_EQ(given_to(node.first.take(), Kind::ping), std::vector<Node>{11});
}

TEST(GoingBack, a_better_way_is_taken_after_two_answers_in_time_100_ms_apart) {
    OneNode node(OneNode::one_by_both());
    leave_and_repair_first(node);
    node.clock += 50ms;
    node.hear(pong_by(0));
    node.pass(49ms);
    EXPECT_TRUE(given_to(node.first.take(), Kind::ping).empty()) << "99 ms after the last";
    EXPECT_EQ(node.networks.carrier(1), "second") << "one answer is not enough";
    node.pass(1ms);
    EXPECT_EQ(given_to(node.first.take(), Kind::ping), std::vector<Node>{11});
    node.hear(pong_by(0));
    node.pass(10ms);
    node.networks.go_on(node.clock);
    EXPECT_EQ(node.networks.carrier(1), "first");
    EXPECT_EQ(node.counted().returns, 1u);
    EXPECT_EQ(node.counted().resent, 0u) << "nothing is sent twice then";
}

TEST(GoingBack, an_answer_that_took_longer_than_50_ms_does_not_count_nor_do_those_before) {
    OneNode node(OneNode::one_by_both());
    leave_and_repair_first(node);
    node.hear(pong_by(0));
    node.pass(100ms);
    ASSERT_EQ(given_to(node.first.take(), Kind::ping).size(), 1u);
    node.clock += 50ms + 1ns;
    node.hear(pong_by(0)); // late
    node.pass(100ms);
    ASSERT_EQ(given_to(node.first.take(), Kind::ping).size(), 1u);
    node.hear(pong_by(0));
    node.pass(10ms);
    node.networks.go_on(node.clock);
    EXPECT_EQ(node.networks.carrier(1), "second");
    node.pass(100ms);
    ASSERT_EQ(given_to(node.first.take(), Kind::ping).size(), 1u);
    node.hear(pong_by(0));
    node.pass(10ms);
    node.networks.go_on(node.clock);
    EXPECT_EQ(node.networks.carrier(1), "first");
}

TEST(GoingBack, new_messages_wait_until_all_has_arrived_by_the_other_way) {
    OneNode node(OneNode::one_by_both());
    leave_and_repair_first(node);
    node.hear(pong_by(0));
    node.pass(100ms);
    node.hear(pong_by(0));
    node.second.arrived = false;
    node.pass(10ms);
    node.networks.go_on(node.clock);
    EXPECT_FALSE(node.send(1, "b")) << "it could overtake what is under way";
    EXPECT_EQ(node.networks.carrier(1), "second");
    node.second.arrived = true;
    node.networks.go_on(node.clock);
    EXPECT_EQ(node.networks.carrier(1), "first");
    EXPECT_TRUE(node.networks.has_something_to_do()) << "who was refused may try again";
    node.first.take();
    EXPECT_TRUE(node.send(1, "b"));
    EXPECT_EQ(node.first.take().size(), 1u);
}

// ---- loss

TEST(GoingBack, a_way_that_has_never_answered_is_tried_and_taken_when_it_answers) {
    PlannedWay silent = OneNode::by(0, 1);
    silent.is_silent = true;
    OneNode node({{}, {silent, OneNode::by(1, 1)}});
    EXPECT_EQ(node.networks.carrier(1), "second");
    ASSERT_TRUE(node.send(1, "hello"));
    EXPECT_EQ(node.second.take().size(), 1u);
    for (Sequence answers = 0; answers < 2; ++answers) {
        node.pass(100ms);
        ASSERT_EQ(given_to(node.first.take(), Kind::ping), std::vector<Node>{11})
            << "it is asked, and nothing else goes there";
        node.pass(10ms);
        node.hear(OneNode::head(Kind::pong, 1, 0), {}, 0);
        EXPECT_EQ(node.networks.carrier(1), "second");
    }
    node.pass(10ms);
    node.networks.go_on(node.clock);
    EXPECT_EQ(node.networks.carrier(1), "first");
    ASSERT_TRUE(node.send(1, "again"));
    EXPECT_EQ(given_to(node.first.take(), Kind::message), std::vector<Node>{11});
}

TEST(LosingNodes, a_way_that_has_never_answered_keeps_nobody_alive) {
    PlannedWay silent = OneNode::by(0, 1);
    silent.is_silent = true;
    OneNode node({{}, {silent, OneNode::by(1, 1)}});
    node.pass(10ms);
    EXPECT_FALSE(node.networks.lost(1));
    node.second.gone.insert(11);
    EXPECT_TRUE(node.networks.lost(1));
}

TEST(LosingNodes, a_way_that_has_never_answered_does_not_put_off_the_loss_of_a_node_that_others_might_reach) {
    PlannedWay silent = OneNode::by(0, 1);
    silent.is_silent = true;
    OneNode node({{}, {silent, OneNode::by(1, 1), OneNode::relayed({})}, {OneNode::by(1, 2)}});
    node.networks.set_silence(0s);
    ASSERT_TRUE(node.send(1, "hello"));
    node.second.gone.insert(11);
    for (int i = 0; i < 20 && !node.networks.lost(1); ++i) node.pass(100ms);
    EXPECT_TRUE(node.networks.lost(1));
}

TEST(LosingNodes, a_node_is_lost_when_all_its_ways_are_gone_or_silent_or_it_says_that_it_goes) {
    OneNode node(OneNode::by_both());
    EXPECT_FALSE(node.networks.lost(1));
    node.first.gone = {11};
    EXPECT_FALSE(node.networks.lost(1));
    node.second.silent = true;
    EXPECT_TRUE(node.networks.lost(1));
    node.second.silent = false;
    EXPECT_FALSE(node.networks.lost(1));
    node.second.left = true;
    EXPECT_TRUE(node.networks.lost(1));
}

TEST(LosingNodes, a_node_whose_networks_do_not_work_is_lost_after_the_silence_that_is_allowed) {
    for (const Duration limit : {Duration{5s}, Duration{60s}, Duration{0}}) {
        OneNode node(OneNode::by_both());
        node.networks.set_silence(limit);
        node.first.up = node.second.up = false;
        node.networks.on_interfaces_changed(node.clock);
        node.pass(10ms);
        node.pass(limit - 20ms);
        EXPECT_FALSE(node.networks.lost(1));
        node.pass(limit == Duration{0} ? Duration{1h} : Duration{30ms});
        EXPECT_EQ(node.networks.lost(1), limit != Duration{0}) << "0: never";
    }
}

TEST(LosingNodes, after_two_seconds_the_user_is_told_who_does_not_answer_by_which_networks_and_when_it_does_again) {
    OneNode node(OneNode::one_by_both());
    node.networks.set_names({"node 0 on alpha", "node 1 on beta"});
    ASSERT_TRUE(node.send(1, "hello"));
    node.first.arrived = false;
    const auto told_after = [&](Duration owed) {
        node.first.owed = owed;
        testing::internal::CaptureStderr();
        node.pass(Networks::tick_time);
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(told_after(2s - 1ns), "");
    EXPECT_EQ(told_after(2s),
              "kumi: warning: node 1 on beta has not answered for 2.0 s, by first, second; waiting on\n");
    EXPECT_EQ(told_after(3s), "") << "once";
    EXPECT_EQ(told_after(0s), "kumi: warning: node 1 on beta answers again, after 2.0 s\n");
    EXPECT_EQ(told_after(0s), "");
    EXPECT_EQ(told_after(5s),
              "kumi: warning: node 1 on beta has not answered for 5.0 s, by first, second; waiting on\n");
}

TEST(LosingNodes, who_waits_for_a_node_that_is_lost_is_told_and_refused) {
    OneNode node(OneNode::by_relay());
    ASSERT_TRUE(node.send(2, "a"));
    EXPECT_FALSE(node.networks.have_all_arrived());
    node.hear(OneNode::head(Kind::left, 1, 3)); // one more than there are nodes
    node.hear(OneNode::head(Kind::left, 1, 0)); // this node itself
    EXPECT_FALSE(node.networks.lost(2));
    EXPECT_FALSE(node.networks.has_something_to_do());
    node.hear(OneNode::head(Kind::left, 1, 2));
    EXPECT_TRUE(node.networks.lost(2));
    EXPECT_TRUE(node.networks.has_something_to_do());
    EXPECT_TRUE(node.networks.have_all_arrived());
    EXPECT_FALSE(node.send(2, "b"));
    EXPECT_FALSE(node.networks.lost(1));
}

TEST(LosingNodes, the_word_of_a_relay_does_not_count_where_a_network_joins_the_nodes) {
    OneNode node(OneNode::by_both());
    node.hear(OneNode::head(Kind::left, 1, 2));
    EXPECT_FALSE(node.networks.lost(2));
    EXPECT_TRUE(node.send(2, "a"));
}

TEST(LosingNodes, a_node_that_has_closed_is_lost_and_refuses_and_still_passes_on) {
    OneNode node(OneNode::by_relay());
    ASSERT_TRUE(node.send(1, "a"));
    EXPECT_FALSE(node.networks.has_something_to_do());
    node.hear(OneNode::head(Kind::closed, 1));
    EXPECT_TRUE(node.networks.lost(1));
    EXPECT_TRUE(node.networks.has_something_to_do()) << "whoever waits for it looks again";
    EXPECT_FALSE(node.send(1, "b"));
    EXPECT_FALSE(node.networks.try_send(1, bytes_of("b"), bytes_of("c")));
    EXPECT_FALSE(node.networks.try_reserve(1, 10));
    node.first.take();
    EXPECT_FALSE(node.networks.lost(2));
    ASSERT_TRUE(node.send(2, "c"));
    const auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 11u);
    EXPECT_EQ(given[0].head().destination, 2u);
}

TEST(LosingNodes, what_is_written_for_a_node_while_it_closes_or_is_lost_is_dropped) {
    for (const Kind kind : {Kind::closed, Kind::left}) {
        OneNode node(OneNode::by_relay());
        ASSERT_TRUE(node.send(2, "under way"));
        const pm::SendSlot slot = node.networks.try_reserve(2, 10);
        ASSERT_TRUE(slot);
        node.hear(kind == Kind::closed ? OneNode::head(kind, 2) : OneNode::head(kind, 1, 2));
        node.networks.commit(slot);
        EXPECT_TRUE(node.networks.lost(2));
        EXPECT_TRUE(node.networks.have_all_arrived());
    }
}

TEST(LosingNodes, a_node_that_has_left_on_one_network_is_refused_on_all_of_them_at_once) {
    OneNode node(OneNode::by_both());
    node.second.gone = {11};
    node.second.left = true; // of all, as far as the test says it
    EXPECT_TRUE(node.networks.lost(1));
    node.networks.on_losses(node.clock);
    EXPECT_FALSE(node.send(1, "a"));
    EXPECT_FALSE(node.networks.try_reserve(1, 10));
}

TEST(LosingNodes, nodes_whose_messages_this_one_passes_on_are_told_of_a_neighbour_that_is_lost_once) {
    OneNode node(OneNode::by_both());
    node.networks.set_served({1, 2, 3});
    node.hear(OneNode::head(Kind::done, 3));
    node.first.gone = node.second.gone = {12};
    const auto told = [&] {
        node.networks.on_losses(node.clock);
        node.networks.go_on(node.clock);
        std::vector<Node> to;
        for (const auto& one : node.first.take())
            if (one.head().kind == Kind::left && one.head().sequence == 2) to.push_back(one.to);
        return to;
    };
    EXPECT_EQ(told(), std::vector<Node>{11}) << "node 3 needs this one no more";
    EXPECT_TRUE(node.networks.lost(2));
    EXPECT_EQ(told(), std::vector<Node>{});
    node.pass(10ms);
    EXPECT_EQ(told(), std::vector<Node>{});
}

TEST(LosingNodes, what_a_relay_tells_is_not_told_again_by_nodes_that_only_heard_of_it) {
    OneNode node(OneNode::by_relay());
    node.networks.set_served({1});
    node.hear(OneNode::head(Kind::left, 1, 2));
    node.networks.go_on(node.clock);
    EXPECT_EQ(given_to(node.first.take(), Kind::left), std::vector<Node>{});
}

TEST(LosingNodes, a_node_that_is_gone_on_all_networks_is_sought_for_a_quarter_of_a_second_though_nobody_sends_to_it) {
    OneNode node({{}, {OneNode::by(0, 1), OneNode::by(1, 1), OneNode::relayed({})}, {OneNode::by(0, 2)}});
    node.first.gone = node.second.gone = {11};
    node.networks.on_losses(node.clock);
    EXPECT_NE(node.networks.next_tick(), never) << "it is looked after from now on";
    EXPECT_FALSE(given_to(node.first.take(), Kind::seek).empty());
    for (int i = 0; i < 25; ++i) node.pass(10ms);
    EXPECT_FALSE(node.networks.lost(1));
    for (int i = 0; i < 2; ++i) node.pass(10ms);
    EXPECT_TRUE(node.networks.lost(1));
    EXPECT_FALSE(node.send(1, "a"));
}

TEST(LosingNodes, a_loss_on_one_of_two_networks_is_no_loss) {
    OneNode node(OneNode::by_both());
    node.first.gone = {11};
    node.networks.on_losses(node.clock);
    EXPECT_FALSE(node.networks.lost(1));
    EXPECT_EQ(node.counted().failovers, 0u) << "nobody sends to it, so nobody is told of the way";
    EXPECT_FALSE(node.send(1, "a"));
    node.pass(10ms);
    EXPECT_TRUE(node.send(1, "a"));
    EXPECT_EQ(given_to(node.second.take(), Kind::message), std::vector<Node>{11});
}

TEST(LosingNodes, a_node_whose_ways_have_no_carrier_for_more_than_a_minute_is_lost) {
    OneNode node(OneNode::by_both());
    ASSERT_TRUE(node.send(1, "a"));
    node.first.arrived = node.second.arrived = false;
    node.first.up = node.second.up = false;
    node.networks.on_interfaces_changed(node.clock);
    node.pass(30s);
    node.pass(30s);
    EXPECT_FALSE(node.networks.lost(1));
    node.pass(10ms);
    EXPECT_TRUE(node.networks.lost(1));
}

TEST(LosingNodes, a_carrier_that_comes_back_starts_the_minute_anew) {
    OneNode node(OneNode::by_both());
    ASSERT_TRUE(node.send(1, "a"));
    node.first.arrived = node.second.arrived = false;
    for (int i = 0; i < 3; ++i) {
        node.first.up = node.second.up = false;
        node.networks.on_interfaces_changed(node.clock);
        node.pass(50s);
        node.first.up = true;
        node.networks.on_interfaces_changed(node.clock);
        node.pass(1s);
        EXPECT_FALSE(node.networks.lost(1)) << i;
    }
}

} // namespace
} // namespace kumi::device::composite
