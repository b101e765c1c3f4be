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

} // namespace
} // namespace kumi::device::composite
