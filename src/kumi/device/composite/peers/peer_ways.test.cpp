#include "kumi/device/composite/peers/peer_ways.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

/// By two links, and over other nodes.
struct ThreeWays {
    ThreeWays() {
        ways.add({.link = &first, .number = 1, .path = {}, .name = "first"});
        ways.add({.link = &second, .number = 1, .path = {}, .name = "second"});
        ways.add({.link = nullptr, .number = 0, .path = {}, .name = "other nodes"});
    }

    Link first{nullptr, nullptr, 7, "first"};
    Link second{nullptr, nullptr, 8, "second"};
    PeerWays ways;
};

TEST(PeerWays, a_peer_is_a_neighbour_while_messages_go_by_a_network) {
    EXPECT_FALSE(PeerWays{}.is_neighbour());
    EXPECT_EQ(PeerWays{}.relayed(), nullptr);
    ThreeWays three;
    EXPECT_TRUE(three.ways.is_neighbour());
    EXPECT_EQ(three.ways.relayed(), &three.ways[2]);
    EXPECT_EQ(three.ways.first_relay(), std::nullopt);
    three.ways.use(2);
    EXPECT_FALSE(three.ways.is_neighbour());
    EXPECT_EQ(three.ways.first_relay(), std::nullopt) << "no path is known";
    three.ways[2].path = {5, 6};
    EXPECT_EQ(three.ways.first_relay(), 5u);
}

TEST(PeerWays, another_way_is_planned_until_one_is_used) {
    ThreeWays three;
    three.ways.use(1);
    three.ways.set_next(0);
    EXPECT_EQ(three.ways.next(), 0u);
    EXPECT_EQ(three.ways.current_index(), 1u);
    three.ways.use(0);
    EXPECT_FALSE(three.ways.next());
    EXPECT_EQ(three.ways.current().name, "first");
}

TEST(PeerWays, the_first_way_is_used_unless_only_others_have_answered) {
    ThreeWays three;
    EXPECT_FALSE(three.ways.use_first_that_answers());
    three.ways[0].set_never_answered();
    EXPECT_TRUE(three.ways[0].has_never_answered());
    EXPECT_TRUE(three.ways.use_first_that_answers());
    EXPECT_EQ(three.ways.current_index(), 1u);
    for (Way& way : three.ways) way.set_never_answered();
    EXPECT_FALSE(three.ways.use_first_that_answers());
}

TEST(OneWay, answers_count_while_they_come_in_time) {
    ThreeWays three;
    Way& way = three.ways[0];
    way.deaf = true;
    way.pinged_at = Instant{1h};
    way.on_pong(Instant{1h} + 50ms, 50ms);
    way.on_pong(Instant{1h} + 50ms, 50ms);
    EXPECT_EQ(way.answers, 2u);
    EXPECT_FALSE(way.deaf);
    way.on_pong(Instant{1h} + 51ms, 50ms);
    EXPECT_EQ(way.answers, 0u);
    EXPECT_EQ(way.answered_at, Instant{1h} + 51ms);
}

} // namespace
} // namespace kumi::device::composite
