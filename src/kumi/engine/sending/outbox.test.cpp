#include "kumi/engine/sending/outbox.hpp"

#include "kumi/engine/sending/outgoing.hpp"
#include "loopback/scripted_channel.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

using loopback::ScriptedChannel;

/// Node 0 of three. Messages are a header and a number.
struct Sending {
    ScriptedChannel channel{3};
    Outbox outbox{channel};
    std::vector<std::byte> large = std::vector<std::byte>(1 << 20);

    bool try_request(Node to, std::uint64_t number) {
        auto message = outgoing(Kind::put, true, number);
        return outbox.try_request(to, message.bytes());
    }
    bool request(Node to, std::uint64_t number, std::size_t body = 0) {
        auto message = outgoing(Kind::put, true, number);
        return outbox.request(to, message.bytes(), Bytes(large).first(body));
    }
    void reply(Node to, std::uint64_t number) {
        auto message = outgoing(Kind::done, false, number);
        outbox.reply(to, message.bytes());
    }
    bool post(Node to) {
        Outgoing<0> message(Kind::nudge, false);
        return outbox.try_post(to, message.bytes());
    }
    bool hear(Node from, std::uint64_t handled) {
        return outbox.on_header(from, {0, static_cast<std::uint16_t>(handled), 0});
    }
    void handle(Node from, unsigned count) {
        for (unsigned i = 0; i < count; ++i) outbox.on_handled(from);
    }

    struct Sent {
        Node to;
        Kind kind;
        std::uint16_t handled;
        std::uint64_t number;
        friend bool operator==(const Sent&, const Sent&) = default;
    };
    std::vector<Sent> sent() {
        std::vector<Sent> all;
        for (const auto& [to, bytes] : channel.take_sent()) {
            Header header{};
            std::uint64_t number = 0;
            read_value(bytes, header);
            read_value(Bytes(bytes).subspan(sizeof header), number);
            all.push_back({to, static_cast<Kind>(header.kind), header.handled, number});
        }
        return all;
    }
    std::vector<std::uint64_t> numbers() {
        std::vector<std::uint64_t> all;
        for (const Sent& message : sent()) all.push_back(message.number);
        return all;
    }
};

std::vector<std::uint64_t> counted(std::uint64_t first, std::uint64_t count) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(first + i);
    return numbers;
}

// ---- credit

TEST(Outbox, so_many_requests_are_under_way_to_a_node_and_no_more) {
    Sending node;
    for (std::uint32_t i = 0; i < requests_max; ++i) ASSERT_TRUE(node.try_request(1, i)) << i;
    EXPECT_FALSE(node.try_request(1, 999));
    EXPECT_TRUE(node.try_request(2, 5)) << "each node has its own";
    EXPECT_EQ(node.sent().size(), requests_max + 1);
    EXPECT_TRUE(node.hear(1, 1));
    EXPECT_TRUE(node.try_request(1, 6));
    EXPECT_FALSE(node.try_request(1, 7));
    EXPECT_EQ(node.outbox.requested(1), requests_max + 1);
    EXPECT_EQ(node.outbox.handled(1), 1u);
}

TEST(Outbox, credit_for_all_that_is_under_way_is_believed_and_for_one_more_is_not) {
    Sending node;
    EXPECT_FALSE(node.hear(1, 1)) << "nothing was sent";
    EXPECT_EQ(node.outbox.handled(1), 0u);
    for (std::uint64_t i = 0; i < 3; ++i) node.try_request(1, i);
    EXPECT_FALSE(node.hear(1, 4));
    EXPECT_FALSE(node.hear(1, 0xffff)) << "nor what would go back";
    EXPECT_EQ(node.outbox.handled(1), 0u) << "none of it counts";
    EXPECT_FALSE(node.outbox.all_handled(1));
    EXPECT_FALSE(node.outbox.all_handled());
    EXPECT_TRUE(node.hear(1, 2));
    EXPECT_FALSE(node.hear(1, 1)) << "it has told of more before";
    EXPECT_EQ(node.outbox.handled(1), 2u);
    EXPECT_TRUE(node.hear(1, 2)) << "the same again is no news";
    EXPECT_TRUE(node.hear(1, 3));
    EXPECT_TRUE(node.outbox.all_handled(1));
    EXPECT_TRUE(node.outbox.all_handled());
    EXPECT_FALSE(node.hear(2, 1)) << "credit is of the node that gives it";
}

TEST(Outbox, counts_wrap_and_credit_stays_exact) {
    Sending node;
    for (std::uint64_t sent = 0; sent < 140'000; sent += 100) {
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(node.try_request(1, 0));
        ASSERT_FALSE(node.hear(1, sent + 101));
        ASSERT_TRUE(node.hear(1, sent + 100));
        ASSERT_EQ(node.outbox.handled(1), sent + 100);
    }
    EXPECT_TRUE(node.outbox.all_handled());
}

TEST(Outbox, who_needs_credit_asks_once_until_it_has_come) {
    Sending node;
    node.outbox.ask_for_credit(1);
    EXPECT_TRUE(node.sent().empty()) << "there is nothing to be told";
    node.try_request(1, 0);
    node.try_request(1, 0);
    node.sent();
    node.channel.refuse(1);
    node.outbox.ask_for_credit(1);
    node.channel.refuse(1, false);
    node.outbox.ask_for_credits();
    node.outbox.ask_for_credits();
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::please, 0, 0}})) << "what was refused does not count";
    node.hear(1, 1);
    node.outbox.ask_for_credit(1);
    EXPECT_EQ(node.sent().size(), 1u) << "the other one is still under way";
    node.hear(1, 2);
    node.outbox.ask_for_credit(1);
    EXPECT_TRUE(node.sent().empty());
}

TEST(Outbox, what_was_handled_is_told_when_half_of_what_may_be_under_way_was) {
    Sending node;
    node.handle(1, requests_max / 2 - 1);
    EXPECT_TRUE(node.sent().empty());
    node.handle(1, 1);
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::credit, requests_max / 2, 0}}));
    node.handle(1, 10);
    EXPECT_TRUE(node.post(1));
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::nudge, requests_max / 2 + 10, 0}}))
        << "by any message";
    node.handle(1, requests_max / 2 - 1);
    EXPECT_TRUE(node.sent().empty()) << "counted from what was told last";
}

TEST(Outbox, who_asks_is_told_at_once_or_when_there_is_something_to_tell) {
    Sending node;
    node.outbox.on_asked(1);
    EXPECT_TRUE(node.sent().empty());
    node.handle(1, 1);
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::credit, 1, 0}}));
    node.handle(1, 1);
    EXPECT_TRUE(node.sent().empty()) << "it has been told";
    node.outbox.on_asked(1);
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::credit, 2, 0}}));
    node.handle(1, 1);
    EXPECT_TRUE(node.sent().empty());
}

TEST(Outbox, credit_that_finds_no_room_waits_once) {
    Sending node;
    node.channel.refuse(1);
    node.handle(1, 300);
    node.channel.refuse(1, false);
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::credit, requests_max / 2, 0}}));
    node.handle(1, 1);
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::credit, 301, 0}})) << "and again when it has gone";
}

TEST(Outbox, who_leaves_tells_those_that_do_not_know_yet) {
    Sending node;
    node.handle(1, 3);
    node.handle(2, 2);
    node.post(2);
    node.sent();
    node.outbox.tell_all_handled();
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::credit, 3, 0}}));
}

// ---- what waits

TEST(Outbox, replies_that_find_no_room_go_later_in_their_order) {
    Sending node;
    node.channel.refuse(1);
    for (std::uint64_t i = 0; i < 5; ++i) node.reply(1, i);
    node.reply(2, 50);
    EXPECT_EQ(node.numbers(), std::vector<std::uint64_t>{50}) << "others do not wait for them";
    EXPECT_FALSE(node.outbox.go_on());
    EXPECT_TRUE(node.outbox.has_waiting());
    node.channel.refuse(1, false);
    node.reply(1, 5);
    EXPECT_TRUE(node.numbers().empty()) << "there is room now, and others come first";
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.numbers(), counted(0, 6));
    EXPECT_FALSE(node.outbox.has_waiting());
    EXPECT_FALSE(node.outbox.go_on());
    node.reply(1, 6);
    EXPECT_EQ(node.numbers(), std::vector<std::uint64_t>{6});
}

TEST(Outbox, no_message_tells_of_a_request_whose_reply_has_not_left) {
    Sending node;
    node.handle(1, 1);
    EXPECT_TRUE(node.post(1)); // tells of one
    node.sent();
    node.channel.refuse(1);
    node.handle(1, 1);
    node.reply(1, 7); // about a third, which is handled right after
    node.handle(1, 1);
    node.channel.refuse(1, false);
    EXPECT_FALSE(node.try_request(1, 8)) << "it would pass the reply";
    EXPECT_TRUE(node.post(1));
    std::vector<std::byte> head(sizeof(Header));
    node.outbox.note_told(1, head);
    Header header{};
    read_value(head, header);
    EXPECT_EQ(header.handled, 1u);
    node.outbox.go_on();
    EXPECT_TRUE(node.post(1));
    EXPECT_EQ(node.sent(),
              (std::vector<Sending::Sent>{{1, Kind::nudge, 1, 0}, {1, Kind::done, 2, 7}, {1, Kind::nudge, 3, 0}}));
}

TEST(Outbox, requests_from_handlers_wait_for_credit_and_keep_their_order) {
    Sending node;
    for (std::uint32_t i = 0; i < requests_max; ++i) ASSERT_TRUE(node.try_request(1, i));
    for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(node.request(1, 1000 + i));
    node.sent();
    EXPECT_FALSE(node.outbox.go_on());
    EXPECT_FALSE(node.outbox.all_handled());
    node.hear(1, 10);
    EXPECT_FALSE(node.try_request(1, 5000)) << "those that wait come first";
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.numbers(), counted(1000, 10)) << "as many as there was credit for";
    EXPECT_EQ(node.outbox.requested(1), requests_max + 10);
    EXPECT_FALSE(node.outbox.go_on());
    node.hear(1, requests_max + 10);
    EXPECT_FALSE(node.outbox.all_handled()) << "ten have not even left";
    EXPECT_FALSE(node.outbox.all_handled(1));
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.numbers(), counted(1010, 10));
    node.hear(1, requests_max + 20);
    EXPECT_TRUE(node.outbox.all_handled());
    EXPECT_TRUE(node.try_request(1, 5001));
}

TEST(Outbox, requests_wait_for_replies_and_not_the_other_way_round) {
    Sending node;
    node.channel.refuse(1);
    EXPECT_TRUE(node.request(1, 100));
    node.reply(1, 1);
    node.channel.refuse(1, false);
    node.outbox.go_on();
    EXPECT_EQ(node.numbers(), (std::vector<std::uint64_t>{1, 100}));
    for (std::uint32_t i = 1; i < requests_max; ++i) ASSERT_TRUE(node.try_request(1, i));
    EXPECT_TRUE(node.request(1, 101)); // no credit
    node.sent();
    node.reply(1, 2);
    EXPECT_EQ(node.numbers(), std::vector<std::uint64_t>{2});
}

TEST(Outbox, so_many_bytes_of_requests_from_handlers_wait_and_not_one_more) {
    Sending node;
    node.channel.refuse(1);
    node.channel.refuse(2);
    constexpr std::size_t head = sizeof(Header) + sizeof(std::uint64_t), body = (1 << 20) - head;
    for (int i = 0; i < 15; ++i) ASSERT_TRUE(node.request(i % 2 == 0 ? 1 : 2, 0, body));
    EXPECT_EQ(node.outbox.waiting_bytes(), std::size_t{15} << 20) << "to all nodes together";
    EXPECT_FALSE(node.request(1, 0, body + 1));
    EXPECT_EQ(node.outbox.waiting_bytes(), std::size_t{15} << 20);
    EXPECT_TRUE(node.request(1, 0, body)) << "exactly";
    EXPECT_EQ(node.outbox.waiting_bytes(), Outbox::waiting_bytes_max);
    EXPECT_FALSE(node.request(2, 0));
    node.reply(2, 0); // replies have bounds of their own
    node.channel.refuse(1, false);
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.outbox.waiting_bytes(), std::size_t{7} << 20);
    EXPECT_TRUE(node.request(2, 0));
}

// ---- loss

TEST(Outbox, what_a_lost_node_owes_is_not_waited_for_and_nothing_is_sent_to_it) {
    Sending node;
    for (std::uint32_t i = 0; i < requests_max; ++i) ASSERT_TRUE(node.try_request(1, i));
    ASSERT_TRUE(node.try_request(2, 0));
    ASSERT_TRUE(node.request(1, 0, 1000));
    node.channel.refuse(1);
    node.reply(1, 0);
    EXPECT_EQ(node.outbox.describe_unhandled(), "; not yet at node 1, node 2");
    node.outbox.give_up(1);
    EXPECT_TRUE(node.outbox.all_handled(1));
    EXPECT_FALSE(node.outbox.all_handled()) << "node 2 still owes";
    EXPECT_EQ(node.outbox.describe_unhandled(), "; not yet at node 2");
    EXPECT_EQ(node.outbox.waiting_bytes(), 0u);
    EXPECT_TRUE(node.hear(1, 50)) << "what it said before it was lost makes sense";
    EXPECT_EQ(node.outbox.handled(1), requests_max) << "and is not counted again";
    EXPECT_TRUE(node.hear(2, 1));
    EXPECT_TRUE(node.outbox.all_handled());
    node.channel.refuse(1, false);
    node.sent();
    node.reply(1, 5);
    node.outbox.go_on();
    EXPECT_TRUE(node.sent().empty());
    EXPECT_FALSE(node.outbox.has_waiting());
}

TEST(Outbox, a_request_to_a_lost_node_is_refused_and_not_kept) {
    Sending node;
    node.channel.lose(1);
    node.outbox.give_up(1);
    EXPECT_FALSE(node.request(1, 0));
    EXPECT_FALSE(node.outbox.has_waiting());
    EXPECT_EQ(node.outbox.waiting_bytes(), 0u);
    EXPECT_TRUE(node.outbox.all_handled());
}

} // namespace
} // namespace kumi::engine
