#include "kumi/group/collective/call_sender.hpp"

#include "loopback/seat.hpp"

#include <gtest/gtest.h>

namespace kumi::group::call_sender_test {
namespace {

class CallSenderTest : public group_test::SeatTest {
protected:
    CallSender sender{*seat, 1};
    std::vector<std::byte> large = std::vector<std::byte>(Mailbox::eager_bytes_max + 1, std::byte{7});

    struct Posted {
        Node to;
        MessageKind kind;
        std::uint16_t step;
        std::uint64_t bytes;
        std::size_t size; // of the piece
        bool operator==(const Posted&) const = default;
    };
    std::vector<Posted> posted() {
        std::vector<Posted> all;
        for (const auto& message : sent()) {
            const auto head = message.head<CollectiveHeader>();
            EXPECT_EQ(head.key, key);
            EXPECT_EQ(head.serial, 3u);
            all.push_back({message.to, head.kind, head.step, head.bytes, message.data<CollectiveHeader>().size()});
        }
        return all;
    }
    std::size_t waiting() const { return seat->box.sendings.size(); }
};

TEST_F(CallSenderTest, a_small_message_goes_at_once) {
    EXPECT_TRUE(sender.send(turn, own, 1, 9, Bytes(large).first(5)));
    EXPECT_TRUE(sender.send(turn, own, 1, 10, {}));
    EXPECT_EQ(waiting(), 0u);
    EXPECT_EQ(posted(), (std::vector<Posted>{{1, MessageKind::first, 9, 5, 5}, {1, MessageKind::first, 10, 0, 0}}));
}

TEST_F(CallSenderTest, pieces_end_between_values) {
    const CallSender of_sevens(*seat, 7);
    EXPECT_EQ(of_sevens.piece_bytes() % 7, 0u);
    EXPECT_GT(of_sevens.piece_bytes() + 7, mailbox->chunk_bytes());
    EXPECT_EQ(CallSender(*seat, mailbox->chunk_bytes() + 1).piece_bytes(), mailbox->chunk_bytes())
        << "such values are put together first";
    EXPECT_EQ(CallSender(*seat, 0).piece_bytes(), mailbox->chunk_bytes());
}

TEST_F(CallSenderTest, a_large_message_is_asked_for_and_goes_in_pieces_when_it_may) {
    EXPECT_FALSE(sender.send(turn, own, 1, 9, large));
    EXPECT_FALSE(sender.send(turn, own, 1, 10, {})) << "it waits behind the first one";
    EXPECT_TRUE(sender.send(turn, own, 2, 9, {})) << "another member does not wait";
    sender.go_on(turn, own);
    const Posted asked{1, MessageKind::ready, 9, large.size(), 0};
    EXPECT_EQ(posted(), (std::vector<Posted>{asked, {2, MessageKind::first, 9, 0, 0}}));
    EXPECT_FALSE(sender.on_cleared(turn, own, 2, true)) << "node 2 was not asked for anything";
    EXPECT_TRUE(sender.on_cleared(turn, own, 1, true));
    sender.go_on(turn, own);
    const std::size_t piece = sender.piece_bytes();
    EXPECT_EQ(posted(), (std::vector<Posted>{{1, MessageKind::more, 9, large.size(), piece},
                                             {1, MessageKind::more, 9, large.size(), large.size() - piece},
                                             {1, MessageKind::first, 10, 0, 0}}));
    EXPECT_EQ(waiting(), 0u);
    EXPECT_FALSE(sender.on_cleared(turn, own, 1, true));
}

TEST_F(CallSenderTest, a_message_that_is_not_wanted_does_not_go) {
    EXPECT_FALSE(sender.send(turn, own, 1, 9, large));
    (void)posted();
    EXPECT_TRUE(sender.on_cleared(turn, own, 1, false));
    EXPECT_EQ(waiting(), 0u);
    EXPECT_TRUE(posted().empty());
}

TEST_F(CallSenderTest, a_message_for_which_the_window_has_no_room_is_asked_for) {
    const Bytes quarter = Bytes(large).first(Windows::window_bytes / 4 - Windows::message_cost);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(sender.send(turn, own, 1, 0, quarter)) << i;
    (void)posted();
    EXPECT_FALSE(sender.send(turn, own, 1, 1, {}));
    EXPECT_EQ(posted(), (std::vector<Posted>{{1, MessageKind::ready, 1, 0, 0}}));
}

} // namespace
} // namespace kumi::group::call_sender_test
