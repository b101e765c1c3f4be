#include "kumi/device/composite/networks/sender.hpp"

#include "composite/one_node.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <string>

namespace kumi::device::composite {
namespace {

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

} // namespace
} // namespace kumi::device::composite
