#include "kumi/device/composite/networks/striper.hpp"

#include "composite/one_node.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <string>

namespace kumi::device::composite {
namespace {

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

TEST(InPieces, a_message_of_two_parts_is_cut_as_if_it_were_one) {
    OneNode node(OneNode::by_both(), stripes_of_40(1'000'000));
    const std::string head = "0123456789", body(100, 'b');
    ASSERT_TRUE(node.networks.try_send(1, bytes_of(head), bytes_of(body)));
    std::string whole(110, '?');
    for (ScriptedLink* const link : {&node.first, &node.second})
        for (const auto& given : link->take()) {
            PieceHead piece{};
            ASSERT_TRUE(read_value(Bytes(given.bytes).subspan(sizeof(Envelope)), piece));
            EXPECT_EQ(piece.total, 110u);
            const std::string text = given.body().substr(sizeof piece);
            whole.replace(piece.offset, text.size(), text);
        }
    EXPECT_EQ(whole, head + body);
    EXPECT_EQ(node.counted().striped, 1u);
    ASSERT_TRUE(node.networks.try_send(1, bytes_of(head), bytes_of(body.substr(1))));
    EXPECT_EQ(node.counted().striped, 1u) << "a body of 99 bytes is not large";
}

TEST(InPieces, what_one_network_joins_is_sent_whole) {
    OneNode node({{}, {OneNode::by(0, 1)}, {OneNode::by(1, 2), OneNode::relayed({1})}}, stripes_of_40(1'000'000));
    ASSERT_TRUE(node.send(1, 1000) && node.send(2, 1000));
    EXPECT_EQ(given_to(node.first.take(), Kind::message), std::vector<Node>{11});
    EXPECT_EQ(given_to(node.second.take(), Kind::message), std::vector<Node>{12});
    EXPECT_EQ(node.counted().striped, 0u);
}

TEST(InPieces, a_piece_goes_to_the_rail_that_will_have_finished_it_first_and_waits_for_that) {
    OneNode node(OneNode::by_both(), stripes_of_40(1'000'000));
    node.first.waiting = 10'000;
    ASSERT_TRUE(node.send(1, 120));
    EXPECT_TRUE(node.first.take().empty());
    EXPECT_EQ(node.second.take().size(), 3u);
    node.first.waiting = 10'000;
    node.second.room = 0;
    EXPECT_FALSE(node.send(1, 120)) << "by the other it would be later";
    node.first.waiting = 0;
    node.second.waiting = 10'000;
    EXPECT_TRUE(node.send(1, 120));
}

/// Large messages to node 1 are refused, and its first network carries 100 MB/s.
void press(OneNode& node, Duration time) {
    node.first.room = 0;
    node.first.waiting = 1000;
    for (const Instant end = node.clock + time; node.clock < end;) {
        node.first.given_bytes += 1'000'000;
        EXPECT_FALSE(node.send(1, 100));
        node.pass(10ms);
    }
}

TEST(InPieces, a_network_that_carries_nothing_is_timed_by_a_letter_that_nobody_waits_for) {
    OneNode node(OneNode::one_by_both(), {.message_bytes_min = 100, .piece_bytes_max = 40});
    node.second.arrived = false; // something is under way there, perhaps a ping
    press(node, 200ms);
    EXPECT_TRUE(node.second.take().empty()) << "the time would be that of both";
    node.second.arrived = true;
    press(node, 2s);
    const auto letters = node.second.take();
    EXPECT_FALSE(given_to(letters, Kind::timed).empty());
    EXPECT_EQ(letters.front().head().kind, Kind::timed);
    EXPECT_EQ(letters.front().bytes.size(), 40 + sizeof(Envelope));
    EXPECT_FALSE(node.hear(OneNode::head(Kind::timed, 1), "nothing")) << "and drops it";
    EXPECT_EQ(node.counted().unsound, 0u);
}

TEST(InPieces, where_two_networks_join_a_pair_whole_messages_alone_time_nothing) {
    OneNode node(OneNode::one_by_both(), StripeOptions::none());
    press(node, 2s);
    EXPECT_TRUE(node.second.take().empty());
}

} // namespace
} // namespace kumi::device::composite
