#include "kumi/device/composite/networks/networks.hpp"

#include "composite/one_node.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <string>

namespace kumi::device::composite {
namespace {

// ---- in

TEST(Envelopes, are_counted_in_a_circle) {
    EXPECT_TRUE(is_before(1, 2));
    EXPECT_FALSE(is_before(2, 2));
    EXPECT_FALSE(is_before(3, 2));
    EXPECT_TRUE(is_before(0xffff'ffff, 0));
    EXPECT_TRUE(is_before(0xffff'fff0, 5));
    EXPECT_FALSE(is_before(5, 0xffff'fff0));
}

TEST(NetworksIn, an_envelope_that_makes_no_sense_is_counted_and_dropped_and_the_next_is_read) {
    WaysTo ways = OneNode::by_both();
    ways[3].clear(); // reached otherwise, by shared memory
    OneNode node(ways);
    Envelope wrong = OneNode::head(Kind::message, 4); // one more than there are nodes
    EXPECT_FALSE(node.hear(wrong, "x"));
    wrong = OneNode::head(Kind::message, 1);
    wrong.destination = 4;
    EXPECT_FALSE(node.hear(wrong, "x"));
    EXPECT_FALSE(node.hear(OneNode::head(Kind::message, 3), "x")) << "from a node that no network joins";
    EXPECT_FALSE(node.hear(OneNode::head(Kind{static_cast<std::uint8_t>(static_cast<int>(Kind::owes) + 1)}, 1), "x"));
    wrong = OneNode::head(Kind::message, 0); // from this node itself
    EXPECT_FALSE(node.hear(wrong, "x"));
    EXPECT_EQ(node.counted().unsound, 5u);
    // Nobody's fault: a greeting comes late.
    EXPECT_FALSE(node.hear_bytes(std::vector<std::byte>(sizeof(Envelope) - 1)));
    EXPECT_FALSE(node.hear_bytes({}));
    EXPECT_EQ(node.counted().unsound, 5u);
    EXPECT_EQ(node.handed, Handed{});
    EXPECT_EQ(node.first.given.size() + node.second.given.size(), 0u);
    EXPECT_TRUE(node.hear(OneNode::head(Kind::message, 2), "a"));
    EXPECT_TRUE(node.hear(OneNode::head(Kind::message, 1), ""));
    EXPECT_EQ(node.handed, (Handed{"2a", "1"}));
}

TEST(NetworksIn, each_message_is_handed_out_once_and_in_order_by_whatever_way_it_comes) {
    OneNode node(OneNode::by_both());
    const auto hear = [&](Sequence sequence, std::uint32_t link) {
        return node.hear(OneNode::head(Kind::message, 1, sequence), std::to_string(sequence), link);
    };
    EXPECT_TRUE(hear(0, 0));
    EXPECT_FALSE(hear(0, 1)) << "it came twice";
    EXPECT_FALSE(hear(3, 1));
    EXPECT_FALSE(hear(2, 1));
    EXPECT_FALSE(hear(2, 0)) << "so did this";
    EXPECT_EQ(node.counted().duplicates, 2u);
    EXPECT_EQ(node.counted().early, 2u);
    EXPECT_EQ(node.handed, (Handed{"10"}));
    EXPECT_FALSE(node.networks.has_early()) << "it is not their turn";
    EXPECT_TRUE(hear(1, 0));
    EXPECT_TRUE(node.networks.has_early());
    EXPECT_TRUE(node.networks.has_something_to_do()) << "nobody may sleep on them";
    EXPECT_EQ(node.hand_out_early(1), 1u);
    EXPECT_EQ(node.handed, (Handed{"10", "11", "12"}));
    EXPECT_TRUE(node.networks.has_early());
    EXPECT_EQ(node.hand_out_early(9), 1u);
    EXPECT_EQ(node.handed, (Handed{"10", "11", "12", "13"}));
    EXPECT_FALSE(node.networks.has_early());
    EXPECT_FALSE(hear(3, 0));
    EXPECT_EQ(node.counted().duplicates, 3u);
    EXPECT_TRUE(hear(4, 0));
}

TEST(NetworksIn, what_comes_too_early_by_far_is_not_kept) {
    OneNode node(OneNode::by_both());
    constexpr Sequence ahead_max = 1 << 20;
    EXPECT_TRUE(node.hear(OneNode::head(Kind::message, 1, 0)));
    EXPECT_FALSE(node.hear(OneNode::head(Kind::message, 1, 1 + ahead_max)));
    EXPECT_EQ(node.counted().early, 1u);
    EXPECT_FALSE(node.hear(OneNode::head(Kind::message, 1, 1 + ahead_max + 1)));
    EXPECT_EQ(node.counted().early, 1u);
    EXPECT_EQ(node.counted().duplicates, 1u);
}

TEST(NetworksIn, who_asks_is_told_how_far_this_node_is) {
    OneNode node(OneNode::by_both());
    Envelope asking = OneNode::head(Kind::message, 1, 0);
    asking.asks = 1;
    EXPECT_TRUE(node.hear(asking));
    node.networks.go_on(node.clock);
    auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 11u);
    EXPECT_EQ(given[0].head().kind, Kind::arrived);
    EXPECT_EQ(given[0].head().sequence, 1u) << "the next that is expected";
    EXPECT_TRUE(node.hear(OneNode::head(Kind::message, 1, 1)));
    node.networks.go_on(node.clock);
    EXPECT_TRUE(node.first.take().empty()) << "who does not ask is not told";
    node.first.room = 0;
    EXPECT_FALSE(node.hear(OneNode::head(Kind::how_far, 1)));
    node.networks.go_on(node.clock);
    EXPECT_TRUE(node.first.take().empty());
    node.first.room = 1;
    node.networks.go_on(node.clock);
    given = node.first.take();
    ASSERT_EQ(given.size(), 1u) << "what found no room is sent later";
    EXPECT_EQ(given[0].head().sequence, 2u);
}

TEST(NetworksIn, a_ping_is_answered_by_the_way_it_came) {
    OneNode node(OneNode::by_both());
    const Envelope ping = OneNode::head(Kind::ping, 1, 5);
    EXPECT_FALSE(node.hear(ping, {}, 1));
    EXPECT_TRUE(node.first.given.empty());
    ASSERT_EQ(node.second.given.size(), 1u);
    const Envelope pong = node.second.given[0].head();
    EXPECT_EQ(node.second.given[0].to, 11u);
    EXPECT_EQ(pong.kind, Kind::pong);
    EXPECT_EQ(pong.sequence, 5u);
    EXPECT_EQ(pong.destination, 1u);
}

TEST(NetworksIn, the_answer_to_a_ping_waits_for_room_on_that_way) {
    OneNode node(OneNode::by_both());
    node.second.room = 0;
    node.hear(OneNode::head(Kind::ping, 1, 5), {}, 1);
    node.hear(OneNode::head(Kind::ping, 1, 6), {}, 1);
    node.networks.go_on(node.clock);
    EXPECT_TRUE(node.second.take().empty());
    node.second.room = 10;
    node.networks.go_on(node.clock);
    node.networks.go_on(node.clock);
    const auto given = node.second.take();
    ASSERT_EQ(given.size(), 1u) << "the last question is answered, once";
    EXPECT_EQ(given[0].head().kind, Kind::pong);
    EXPECT_EQ(given[0].head().sequence, 6u);
    EXPECT_TRUE(node.first.take().empty()) << "and not by another way";
}

TEST(NetworksIn, a_ping_by_a_way_that_is_down_is_forgotten) {
    OneNode node(OneNode::by_both());
    node.second.room = 0;
    node.hear(OneNode::head(Kind::ping, 1, 5), {}, 1);
    node.second.up = false;
    node.networks.on_interfaces_changed(node.clock);
    node.networks.go_on(node.clock);
    node.second.room = 10;
    node.second.up = true;
    node.networks.on_interfaces_changed(node.clock);
    node.networks.go_on(node.clock);
    for (const auto& given : node.second.take()) EXPECT_NE(given.head().kind, Kind::pong);
}

// ---- passed on

/// From node 1 over this one to node 2, so many bytes in all.
std::vector<std::byte> letter_to_pass(std::size_t bytes, Node source = 1) {
    Envelope head = OneNode::head(Kind::message, source);
    head.destination = 2;
    return OneNode::letter(head, Path{0}, std::string(bytes - head_bytes(1), 'x'));
}

TEST(Passing, a_letter_goes_on_as_it_is_to_the_next_on_its_path) {
    OneNode node(OneNode::by_both());
    EXPECT_FALSE(node.hear_bytes(letter_to_pass(36)));
    auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 12u) << "the destination";
    EXPECT_EQ(given[0].head().at, 1);
    EXPECT_EQ(given[0].head().source, 1u);
    EXPECT_EQ(given[0].path(), Path{0});
    EXPECT_EQ(given[0].body(), "xxxx");
    EXPECT_EQ(node.counted().passed_on, 1u);
    Envelope head = OneNode::head(Kind::message, 1);
    head.destination = 2;
    head.at = 1;
    EXPECT_FALSE(node.hear_bytes(OneNode::letter(head, Path{3, 0, 3}, "y")));
    given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 13u) << "the next on its path";
    EXPECT_EQ(given[0].head().at, 2);
    EXPECT_EQ(given[0].path(), (Path{3, 0, 3}));
    EXPECT_EQ(given[0].body(), "y");
    EXPECT_EQ(node.handed, Handed{}) << "it is not this node's";
}

TEST(Passing, a_letter_whose_path_makes_no_sense_is_counted_and_dropped) {
    OneNode node(OneNode::by_both());
    Envelope head = OneNode::head(Kind::message, 1);
    head.destination = 2;
    node.hear_bytes(OneNode::letter(head, Path{}, "x"));     // nobody is to pass it on
    node.hear_bytes(OneNode::letter(head, Path{3}, "x"));    // another is
    node.hear_bytes(OneNode::letter(head, Path{0, 4}, "x")); // one more than there are nodes
    head.at = 1;
    node.hear_bytes(OneNode::letter(head, Path{0}, "x")); // all have
    head.at = 0;
    auto cut = OneNode::letter(head, Path{0});
    cut.pop_back(); // the path is not all there
    node.hear_bytes(cut);
    head.source = 0; // from this node itself
    node.hear_bytes(OneNode::letter(head, Path{0}, "x"));
    head.source = 1;
    head.destination = 4; // one more than there are nodes
    node.hear_bytes(OneNode::letter(head, Path{0}, "x"));
    EXPECT_TRUE(node.first.take().empty());
    EXPECT_EQ(node.counted().unsound, 7u);
    EXPECT_EQ(node.counted().passed_on, 0u);
}

TEST(Passing, a_relay_holds_two_windows_between_two_nodes_and_not_a_byte_more) {
    constexpr std::size_t held_max = 2 * relay_window;
    for (const std::size_t more : {0u, 1u}) {
        OneNode node(OneNode::by_both());
        node.first.room = 0;
        node.hear_bytes(letter_to_pass(held_max - 100));
        node.hear_bytes(letter_to_pass(100 + more));
        const Envelope beyond{
            .sequence = 0, .source = 1, .destination = 3, .kind = Kind::message, .asks = 1, .hops = 2, .at = 0};
        node.hear_bytes(OneNode::letter(beyond, Path{0, 2}, "x")); // to another destination, over the same neighbour
        node.hear_bytes(letter_to_pass(100, 3)); // of another source
        node.networks.go_on(node.clock);
        EXPECT_TRUE(node.first.given.empty());
        node.first.room = 10;
        node.networks.go_on(node.clock);
        auto given = node.first.take();
        ASSERT_EQ(given.size(), more == 0 ? 4u : 3u);
        EXPECT_EQ(given[given.size() - 2].head().destination, 3u);
        EXPECT_EQ(given[0].bytes.size(), held_max - 100);
        EXPECT_EQ(given[0].head().at, 1);
        EXPECT_EQ(given.back().head().source, 3u);
        // What has gone on makes room again.
        node.first.room = 0;
        node.hear_bytes(letter_to_pass(held_max - 100));
        node.hear_bytes(letter_to_pass(100));
        node.first.room = 10;
        node.networks.go_on(node.clock);
        EXPECT_EQ(node.first.take().size(), 2u);
    }
}

TEST(Passing, letters_that_wait_go_on_before_those_that_come_later) {
    OneNode node(OneNode::by_both());
    node.first.room = 0;
    node.hear_bytes(letter_to_pass(40));
    node.first.room = 10;
    node.hear_bytes(letter_to_pass(50));
    node.networks.go_on(node.clock);
    const auto given = node.first.take();
    ASSERT_EQ(given.size(), 2u);
    EXPECT_EQ(given[0].bytes.size(), 40u);
}

TEST(Passing, who_sends_to_a_node_that_is_lost_is_told_and_not_about_such_news) {
    OneNode node(OneNode::by_both());
    node.first.gone = node.second.gone = {12};
    node.hear_bytes(letter_to_pass(40));
    node.networks.go_on(node.clock);
    const auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 11u);
    EXPECT_EQ(given[0].head().kind, Kind::left);
    EXPECT_EQ(given[0].head().sequence, 2u);
    Envelope news = OneNode::head(Kind::left, 1, 3);
    news.destination = 2;
    node.hear_bytes(OneNode::letter(news, Path{0}));
    node.networks.go_on(node.clock);
    EXPECT_TRUE(node.first.take().empty());
}

TEST(Passing, a_relay_whose_networks_to_the_next_node_fail_tells_the_source_and_asks_no_other_relay) {
    WaysTo ways = OneNode::by_both();
    ways[2] = {OneNode::by(0, 2), OneNode::relayed({3})};
    OneNode node(ways);
    ASSERT_TRUE(node.send(2, 8));
    node.first.room = 0;
    node.hear_bytes(letter_to_pass(40)); // waits
    node.first.gone = {12};
    node.first.room = 100;
    node.pass(10ms);
    EXPECT_EQ(node.networks.carrier(2), "node 3") << "its own messages go there";
    node.networks.go_on(node.clock);
    const auto broken_told = [&] {
        std::vector<Sequence> told;
        for (const auto& one : node.first.take())
            if (one.head().kind == Kind::broken && one.to == 11 && one.head().destination == 1)
                told.push_back(one.head().sequence);
        return told;
    };
    EXPECT_EQ(broken_told(), std::vector<Sequence>{2}) << "of what waited";
    node.hear_bytes(letter_to_pass(40));
    EXPECT_EQ(broken_told(), std::vector<Sequence>{2});
    EXPECT_EQ(node.counted().not_passed_on, 2u);
    EXPECT_EQ(node.counted().passed_on, 1u);
}

// ---- room that several wait for

TEST(Contention, while_others_wait_for_room_a_message_waits_with_them_and_both_get_it_in_turns) {
    OneNode node(OneNode::by_both());
    node.first.room = 0;
    EXPECT_FALSE(node.send(2, "own")) << "nobody else waits: the sender tries again";
    for (int i = 0; i < 4; ++i) node.hear_bytes(letter_to_pass(40));
    EXPECT_TRUE(node.send(2, "own"));
    EXPECT_FALSE(node.send(2, "own")) << "one at a time";
    EXPECT_FALSE(node.networks.has_something_to_do());
    std::size_t own = 0, passed = 0;
    for (int i = 0; i < 4; ++i) {
        node.first.room = 1;
        node.networks.go_on(node.clock);
        for (const auto& given : node.first.take()) ++(given.head().source == 0 ? own : passed);
        if (node.networks.has_something_to_do()) { // there is room for another
            EXPECT_TRUE(node.send(2, "own"));
        }
    }
    EXPECT_EQ(own, 2u);
    EXPECT_EQ(passed, 2u);
}

TEST(Contention, a_message_that_waits_with_others_may_be_written_in_place) {
    OneNode node(OneNode::by_both());
    node.first.room = 0;
    node.hear_bytes(letter_to_pass(40));
    for (const bool is_given : {false, true}) {
        const pm::SendSlot slot = node.networks.try_reserve(2, 3);
        ASSERT_TRUE(slot);
        copy_bytes(slot.bytes().data(), bytes_of(std::string_view("own")));
        if (is_given) node.networks.commit(slot);
        else node.networks.cancel(slot);
    }
    EXPECT_EQ(node.first.cancelled, 0u) << "the link knows of no reservation";
    node.first.room = 10;
    node.networks.go_on(node.clock);
    std::string bodies;
    for (const auto& given : node.first.take())
        if (given.head().source == 0) bodies += given.body() + ' ';
    EXPECT_EQ(bodies, "own ");
}

TEST(Contention, memory_that_is_not_there_is_a_refusal) {
    OneNode node(OneNode::by_both());
    node.first.room = 0;
    node.hear_bytes(letter_to_pass(40));
    EXPECT_FALSE(node.networks.try_reserve(2, std::numeric_limits<std::ptrdiff_t>::max()));
    EXPECT_TRUE(node.send(2, "own")) << "and what takes less is taken";
}

TEST(Contention, destinations_behind_one_relay_get_room_in_turns) {
    OneNode node({{}, {OneNode::by(0, 1)}, {OneNode::relayed({1})}, {OneNode::relayed({1})}});
    node.first.room = 0;
    for (int i = 0; i < 3; ++i)
        for (const Node to : {Node{2}, Node{3}}) ASSERT_TRUE(node.send(to, "x"));
    std::vector<Node> destinations;
    for (int i = 0; i < 4; ++i) {
        node.first.room = 1;
        node.networks.go_on(node.clock);
        for (const auto& given : node.first.take()) destinations.push_back(given.head().destination);
    }
    EXPECT_EQ(std::count(destinations.begin(), destinations.end(), Node{2}), 2);
    EXPECT_EQ(std::count(destinations.begin(), destinations.end(), Node{3}), 2);
}

TEST(Contention, what_is_said_about_ways_goes_before_the_messages_of_all) {
    OneNode node({{}, {OneNode::by(0, 1)}, {OneNode::relayed({1})}});
    node.first.room = 0;
    ASSERT_TRUE(node.send(2, "x"));
    node.hear(OneNode::head(Kind::ping, 1, 5));
    for (int i = 0; i < 2; ++i) {
        node.first.room = 1;
        node.networks.go_on(node.clock);
        const auto given = node.first.take();
        ASSERT_EQ(given.size(), 1u);
        EXPECT_EQ(given[0].head().kind, i == 0 ? Kind::pong : Kind::message);
    }
}

// ---- through a relay

TEST(ThroughRelays, a_source_has_a_window_under_way_or_one_message_and_not_a_byte_more) {
    for (const std::size_t more : {0u, 1u}) {
        OneNode node(OneNode::by_relay());
        ASSERT_TRUE(node.send(2, 1000));
        constexpr std::size_t left = relay_window - 1000 - sizeof(Envelope);
        EXPECT_EQ(node.send(2, left + more), more == 0);
    }
    OneNode node(OneNode::by_relay());
    EXPECT_TRUE(node.send(2, relay_window + 5000)) << "one message, however large";
    EXPECT_FALSE(node.send(2, std::size_t{0}));
    EXPECT_TRUE(node.send(1, 8)) << "others are not held back";
}

TEST(ThroughRelays, a_message_is_kept_until_it_has_arrived_and_then_there_is_room_again) {
    OneNode node(OneNode::by_relay());
    ASSERT_TRUE(node.send(2, relay_window));
    EXPECT_FALSE(node.send(2, "more"));
    auto given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].to, 11u) << "to the relay";
    EXPECT_EQ(given[0].head().destination, 2u);
    EXPECT_EQ(given[0].head().asks, 1);
    EXPECT_EQ(given[0].path(), Path{1});
    EXPECT_EQ(given[0].head().at, 0);
    EXPECT_FALSE(node.networks.has_something_to_do());
    EXPECT_FALSE(node.networks.have_all_arrived());
    node.hear(OneNode::head(Kind::arrived, 2, 0));
    EXPECT_FALSE(node.networks.has_something_to_do()) << "nothing has arrived";
    node.hear(OneNode::head(Kind::arrived, 2, 1));
    EXPECT_TRUE(node.networks.has_something_to_do()) << "who was refused may try again";
    EXPECT_FALSE(node.networks.has_something_to_do()) << "and is told once";
    EXPECT_TRUE(node.networks.have_all_arrived());
    EXPECT_TRUE(node.send(2, "more"));
    given = node.first.take();
    ASSERT_EQ(given.size(), 1u);
    EXPECT_EQ(given[0].body(), "more");
    EXPECT_EQ(given[0].head().sequence, 1u);
}

TEST(ThroughRelays, when_the_window_opens_more_is_given_to_the_relay_without_a_call) {
    OneNode node(OneNode::by_relay());
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(node.send(2, 30'000));
    EXPECT_EQ(node.first.take().size(), 2u) << "64 KiB";
    node.networks.go_on(node.clock);
    EXPECT_EQ(node.first.take().size(), 0u);
    node.hear(OneNode::head(Kind::arrived, 2, 1));
    node.networks.go_on(node.clock);
    EXPECT_EQ(node.first.take().size(), 3u) << "128 KiB";
}

TEST(ThroughRelays, an_arrival_of_what_was_not_yet_given_to_the_relay_is_not_believed) {
    OneNode node(OneNode::by_relay());
    node.first.room = 0;
    ASSERT_TRUE(node.send(2, "a"));
    node.hear(OneNode::head(Kind::arrived, 2, 1));
    node.first.room = 9;
    node.networks.go_on(node.clock);
    EXPECT_EQ(node.first.take().size(), 1u);
}

TEST(ThroughRelays, what_nobody_acknowledges_is_sent_again_after_300_ms_and_then_after_600) {
    OneNode node(OneNode::by_relay());
    node.networks.go_on(node.clock);
    ASSERT_TRUE(node.send(2, "a"));
    node.pass(0ms);
    node.first.take();
    const auto times_sent = [&](Duration time) {
        node.pass(time);
        node.networks.go_on(node.clock);
        return given_to(node.first.take(), Kind::message).size();
    };
    EXPECT_EQ(times_sent(300ms), 0u);
    EXPECT_EQ(times_sent(10ms), 1u);
    EXPECT_EQ(node.counted().resent, 1u);
    EXPECT_EQ(times_sent(600ms), 0u);
    EXPECT_EQ(times_sent(10ms), 1u);
    EXPECT_EQ(times_sent(1190ms), 0u);
    node.hear(OneNode::head(Kind::arrived, 2, 1));
    EXPECT_EQ(times_sent(60s), 0u);
}

TEST(ThroughRelays, where_arrivals_are_far_apart_it_is_sent_again_later) {
    OneNode node(OneNode::by_relay());
    node.networks.go_on(node.clock);
    const auto times_sent = [&](Duration time) {
        node.pass(time);
        node.networks.go_on(node.clock);
        return given_to(node.first.take(), Kind::message).size();
    };
    Sequence sent = 0;
    const auto send_and_hear_after = [&](Duration time) {
        ASSERT_TRUE(node.send(2, "a"));
        node.pass(0ms);
        node.clock += time;
        node.hear(OneNode::head(Kind::arrived, 2, ++sent));
        node.first.take();
    };
    send_and_hear_after(200ms);
    ASSERT_TRUE(node.send(2, "a"));
    node.pass(0ms);
    node.first.take();
    EXPECT_EQ(times_sent(800ms), 0u) << "four times as long as the last took";
    EXPECT_EQ(times_sent(10ms), 1u);
    node.hear(OneNode::head(Kind::arrived, 2, ++sent));
    for (int i = 0; i < 40; ++i) send_and_hear_after(1ms);
    ASSERT_TRUE(node.send(2, "a"));
    node.pass(0ms);
    node.first.take();
    EXPECT_EQ(times_sent(300ms), 0u);
    EXPECT_EQ(times_sent(10ms), 1u) << "that was long ago";
}

// ---- reservations

TEST(Reservations, who_was_refused_because_of_one_is_told_when_it_ends) {
    OneNode node(OneNode::by_both());
    for (const bool is_committed : {true, false}) {
        for (const bool is_missed : {true, false}) {
            const pm::SendSlot slot = node.networks.try_reserve(1, 3);
            ASSERT_TRUE(slot);
            EXPECT_EQ(slot.bytes().size(), 3u);
            if (is_missed) {
                EXPECT_FALSE(node.send(1, "x"));
                EXPECT_FALSE(node.networks.try_reserve(1, 3));
                EXPECT_FALSE(node.networks.try_send(1, bytes_of('a'), bytes_of('b')));
            }
            EXPECT_TRUE(node.send(2, "x")) << "others are not concerned";
            EXPECT_EQ(is_committed ? node.networks.commit(slot) : node.networks.cancel(slot), is_missed);
            EXPECT_TRUE(node.send(1, "x"));
        }
    }
    EXPECT_EQ(node.networks.sent(1).messages, 6u);
    EXPECT_EQ(node.networks.sent(1).bytes, 4u + 2 * 3);
}

TEST(Reservations, one_whose_way_fails_is_sent_by_the_next) {
    OneNode node(OneNode::by_both());
    const pm::SendSlot slot = node.networks.try_reserve(1, 3);
    ASSERT_TRUE(slot);
    std::memcpy(slot.bytes().data(), "abc", 3);
    node.first.up = false;
    node.networks.on_interfaces_changed(node.clock);
    EXPECT_EQ(node.networks.carrier(1), "second");
    node.networks.commit(slot);
    EXPECT_EQ(node.first.cancelled, 1u);
    EXPECT_EQ(given_to(node.first.given, Kind::message), std::vector<Node>{});
    const auto given = node.second.take();
    ASSERT_EQ(given_to(given, Kind::message), std::vector<Node>{11});
    EXPECT_EQ(given.back().body(), "abc");
}

TEST(Reservations, messages_of_two_parts_are_one_message_however_long_the_first_is) {
    OneNode node(OneNode::by_both());
    for (const std::size_t head_bytes : {0u, 1u, 256u, 257u}) {
        const std::string head(head_bytes, 'h');
        ASSERT_TRUE(node.networks.try_send(1, bytes_of(std::string_view(head)), bytes_of(std::string_view("body"))));
        const auto given = node.first.take();
        ASSERT_EQ(given.size(), 1u);
        EXPECT_EQ(given[0].body(), head + "body");
    }
}

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

// ---- the end

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

// ---- in pieces

StripeOptions stripes_of_40(std::size_t ahead) {
    return {.message_bytes_min = 100, .piece_bytes_max = 40, .ahead_bytes_max = ahead, .always = true};
}

TEST(InPieces, messages_from_a_size_on_are_cut_and_every_byte_of_them_is_sent_once) {
    OneNode node(OneNode::by_both(), stripes_of_40(1'000'000));
    ASSERT_TRUE(node.send(1, std::string(99, 'x')));
    EXPECT_EQ(given_to(node.first.take(), Kind::message), std::vector<Node>{11});
    for (const std::size_t bytes : {100u, 101u, 119u, 120u, 121u, 200u}) {
        std::string text;
        for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>('a' + i % 26);
        ASSERT_TRUE(node.send(1, text));
        std::string whole(bytes, '?');
        for (ScriptedLink* const link : {&node.first, &node.second}) {
            EXPECT_FALSE(link->given.empty()) << "both carry some of it";
            for (const auto& given : link->take()) {
                EXPECT_EQ(given.head().kind, Kind::piece);
                EXPECT_EQ(given.head().asks, 1);
                PieceHead piece{};
                ASSERT_TRUE(read_value(Bytes(given.bytes).subspan(sizeof(Envelope)), piece));
                const std::string body = given.body().substr(sizeof piece);
                EXPECT_EQ(piece.total, bytes);
                ASSERT_LE(piece.offset + body.size(), bytes);
                EXPECT_LE(body.size(), 40u);
                for (std::size_t i = 0; i < body.size(); ++i) {
                    EXPECT_EQ(whole[piece.offset + i], '?') << "sent twice";
                    whole[piece.offset + i] = body[i];
                }
            }
        }
        EXPECT_EQ(whole, text);
    }
    EXPECT_EQ(node.counted().striped, 6u);
}

TEST(InPieces, no_message_gets_further_ahead_of_one_that_has_not_arrived_than_is_allowed) {
    for (const std::size_t allowed : {299u, 300u}) {
        OneNode node(OneNode::by_both(), stripes_of_40(allowed));
        ASSERT_TRUE(node.send(1, 100) && node.send(1, 100));
        EXPECT_EQ(node.send(1, 100), allowed == 300);
        EXPECT_FALSE(node.send(1, 100));
        node.hear(OneNode::head(Kind::arrived, 1, 0));
        EXPECT_FALSE(node.send(1, 100)) << "the first has not arrived";
        node.hear(OneNode::head(Kind::arrived, 1, 1));
        EXPECT_TRUE(node.networks.has_something_to_do());
        EXPECT_EQ(node.send(1, 100), true);
    }
}

TEST(InPieces, small_messages_too_are_held_when_they_are_too_far_ahead) {
    // Twice the largest message, which is 200 here.
    OneNode node(OneNode::by_both(), stripes_of_40(0), 200 + head_bytes_max);
    ASSERT_TRUE(node.send(1, 100));
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(node.send(1, 50));
    node.pass(10ms);
    EXPECT_TRUE(node.send(1, 1)) << "400 bytes are not too many";
    node.pass(10ms);
    EXPECT_FALSE(node.send(1, 1)) << "401 are";
    EXPECT_TRUE(node.send(2, 1)) << "other nodes are not concerned";
    node.hear(OneNode::head(Kind::arrived, 1, 1));
    EXPECT_TRUE(node.send(1, 1));
}

TEST(InPieces, a_message_of_pieces_waits_for_its_turn) {
    OneNode node(OneNode::by_both());
    const auto piece = [](Sequence sequence, std::uint32_t total, std::uint32_t offset, std::string_view body) {
        const PieceHead head{total, offset};
        return OneNode::letter(OneNode::head(Kind::piece, 1, sequence),
                               std::string(text_of(bytes_of(head))) + std::string(body));
    };
    EXPECT_FALSE(node.hear_bytes(piece(1, 4, 2, "cd"), 1));
    EXPECT_FALSE(node.hear_bytes(piece(1, 4, 2, "cd"), 0));
    EXPECT_EQ(node.counted().duplicates, 1u);
    EXPECT_FALSE(node.hear_bytes(piece(1, 4, 1, "b"), 0)) << "complete is it not";
    EXPECT_FALSE(node.hear_bytes(piece(1, 4, 0, "a"), 0)) << "it is, but message 0 is missing";
    EXPECT_EQ(node.counted().early, 1u);
    EXPECT_FALSE(node.hear_bytes(piece(1, 4, 0, "a"), 1));
    EXPECT_EQ(node.counted().duplicates, 2u) << "of a message that is here";
    EXPECT_FALSE(node.hear_bytes(piece(2, 4, 1, "xxxx"), 1));
    EXPECT_EQ(node.counted().unsound, 1u) << "one byte over its end";
    EXPECT_TRUE(node.hear(OneNode::head(Kind::message, 1, 0), "first"));
    EXPECT_EQ(node.hand_out_early(9), 1u);
    EXPECT_TRUE(node.hear_bytes(piece(2, 1, 0, "z"), 1)) << "in its turn it is handed out at once";
    EXPECT_EQ(node.handed, (Handed{"1first", "1abcd", "1z"}));
    EXPECT_FALSE(node.hear_bytes(piece(1, 4, 2, "cd"), 1));
    EXPECT_EQ(node.counted().duplicates, 3u) << "of a message that was handed out";
}

} // namespace
} // namespace kumi::device::composite
