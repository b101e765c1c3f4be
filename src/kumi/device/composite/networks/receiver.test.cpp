#include "kumi/device/composite/networks/receiver.hpp"

#include "composite/one_node.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <string>

namespace kumi::device::composite {
namespace {

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

} // namespace
} // namespace kumi::device::composite
