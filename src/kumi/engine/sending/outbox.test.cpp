#include "kumi/engine/sending/outbox.hpp"

#include "kumi/engine/sending/outgoing.hpp"
#include "loopback/scripted_channel.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

using loopback::ScriptedChannel;

constexpr std::size_t unit = 64 << 10; // the largest body of a request that is not large
constexpr std::size_t few_bytes = 16 * unit;

/// Node 0 of three, on which `few_bytes` may wait. Messages are a header and a number.
struct Sending {
    explicit Sending(std::size_t kept_bytes_max = ByteWindows::bytes_of_all)
        : outbox(channel, few_bytes, kept_bytes_max) {}
    ScriptedChannel channel{3, 0, 2 << 20};
    Outbox outbox;
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
        for (unsigned i = 0; i < count; ++i) outbox.on_handled(from, sizeof(Header));
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
    /// Without questions for credit.
    std::vector<std::uint64_t> numbers() {
        std::vector<std::uint64_t> all;
        for (const Sent& message : sent())
            if (message.kind != Kind::please) all.push_back(message.number);
        return all;
    }
    /// The pressure of each request that was sent.
    std::vector<std::uint32_t> pressures() {
        std::vector<std::uint32_t> all;
        for (const auto& [to, bytes] : channel.take_sent()) {
            Header header{};
            read_value(bytes, header);
            if (header.is_request != 0) all.push_back(pressure_of(header));
        }
        return all;
    }
    bool try_send(Node to, std::uint64_t number) {
        auto message = outgoing(Kind::first_handler, true, number);
        return outbox.try_send(to, message.bytes());
    }
    bool keep_plain(Node to, std::uint64_t number, std::size_t body = 0) {
        auto message = outgoing(Kind::forwarded, false, number);
        std::vector<std::byte> copy(message.bytes().begin(), message.bytes().end());
        copy.resize(copy.size() + body);
        return outbox.keep_plain(to, std::move(copy));
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
    EXPECT_EQ(node.outbox.credits().requested(1), requests_max + 1);
    EXPECT_EQ(node.outbox.credits().handled(1), 1u);
}

TEST(Outbox, credit_for_all_that_is_under_way_is_believed_and_for_one_more_is_not) {
    Sending node;
    EXPECT_FALSE(node.hear(1, 1)) << "nothing was sent";
    EXPECT_EQ(node.outbox.credits().handled(1), 0u);
    for (std::uint64_t i = 0; i < 3; ++i) node.try_request(1, i);
    EXPECT_FALSE(node.hear(1, 4));
    EXPECT_FALSE(node.hear(1, 0xffff)) << "nor what would go back";
    EXPECT_EQ(node.outbox.credits().handled(1), 0u) << "none of it counts";
    EXPECT_FALSE(node.outbox.credits().all_handled(1));
    EXPECT_FALSE(node.outbox.credits().all_handled());
    EXPECT_TRUE(node.hear(1, 2));
    EXPECT_FALSE(node.hear(1, 1)) << "it has told of more before";
    EXPECT_EQ(node.outbox.credits().handled(1), 2u);
    EXPECT_TRUE(node.hear(1, 2)) << "the same again is no news";
    EXPECT_TRUE(node.hear(1, 3));
    EXPECT_TRUE(node.outbox.credits().all_handled(1));
    EXPECT_TRUE(node.outbox.credits().all_handled());
    EXPECT_FALSE(node.hear(2, 1)) << "credit is of the node that gives it";
}

TEST(Outbox, counts_wrap_and_credit_stays_exact) {
    Sending node;
    for (std::uint64_t sent = 0; sent < 140'000; sent += 100) {
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(node.try_request(1, 0));
        ASSERT_FALSE(node.hear(1, sent + 101));
        ASSERT_TRUE(node.hear(1, sent + 100));
        ASSERT_EQ(node.outbox.credits().handled(1), sent + 100);
    }
    EXPECT_TRUE(node.outbox.credits().all_handled());
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
    node.outbox.ask_for_credit(1);
    node.outbox.ask_for_credit(1);
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
    EXPECT_FALSE(node.outbox.seems_crowded(1));
    for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(node.request(1, 1000 + i));
    EXPECT_TRUE(node.outbox.seems_crowded(1));
    EXPECT_FALSE(node.outbox.seems_crowded(0)) << "another node";
    node.sent();
    EXPECT_FALSE(node.outbox.go_on());
    EXPECT_FALSE(node.outbox.credits().all_handled());
    node.hear(1, 10);
    EXPECT_FALSE(node.try_request(1, 5000)) << "those that wait come first";
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.numbers(), counted(1000, 10)) << "as many as there was credit for";
    EXPECT_EQ(node.outbox.credits().requested(1), requests_max + 10);
    EXPECT_FALSE(node.outbox.go_on());
    node.hear(1, requests_max + 10);
    EXPECT_FALSE(node.outbox.credits().all_handled()) << "ten have not even left";
    EXPECT_FALSE(node.outbox.credits().all_handled(1));
    EXPECT_TRUE(node.outbox.seems_crowded(1));
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_FALSE(node.outbox.seems_crowded(1));
    EXPECT_EQ(node.numbers(), counted(1010, 10));
    node.hear(1, requests_max + 20);
    EXPECT_TRUE(node.outbox.credits().all_handled());
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

TEST(Outbox, whatever_waits_is_kept_and_counts_for_all_nodes_together) {
    Sending node;
    node.channel.refuse(1);
    node.channel.refuse(2);
    constexpr std::size_t head = sizeof(Header) + sizeof(std::uint64_t), body = unit - head;
    for (int i = 0; i < 14; ++i) ASSERT_TRUE(node.request(i % 2 == 0 ? 1 : 2, 0, body));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(node.keep_plain(1, 0, body));
    EXPECT_EQ(node.outbox.backlog().bytes(), few_bytes) << "heads too";
    EXPECT_FALSE(node.outbox.backlog().is_full()) << "exactly";
    node.reply(2, 0);
    EXPECT_EQ(node.outbox.backlog().bytes(), few_bytes + head) << "replies too";
    EXPECT_TRUE(node.outbox.backlog().is_full());
    ASSERT_TRUE(node.request(1, 0, body)) << "and yet nothing is refused";
    node.channel.refuse(1, false);
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.outbox.backlog().bytes(), 7 * unit + head);
    EXPECT_FALSE(node.outbox.backlog().is_full());
    node.outbox.give_up(2);
    EXPECT_EQ(node.outbox.backlog().bytes(), 0u);
}

TEST(Outbox, the_more_pressure_a_request_has_the_more_may_wait_before_it_is_held_back) {
    Sending node;
    node.channel.refuse(1);
    for (std::uint32_t pressure = 0; pressure < pressure_max; ++pressure) {
        while (node.outbox.backlog().bytes() <= (pressure + 1) * few_bytes) {
            EXPECT_FALSE(node.outbox.backlog().is_full(pressure)) << pressure;
            ASSERT_TRUE(node.request(1, 0, unit));
        }
        EXPECT_TRUE(node.outbox.backlog().is_full(pressure)) << pressure;
        EXPECT_FALSE(node.outbox.backlog().is_full(pressure + 1)) << pressure;
    }
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(node.request(1, 0, unit));
    EXPECT_FALSE(node.outbox.backlog().is_full(pressure_max)) << "never";
}

TEST(Outbox, while_much_waits_nothing_is_sent_to_handlers_and_services_go_on) {
    Sending node;
    node.channel.refuse(1);
    EXPECT_TRUE(node.try_send(2, 0));
    for (int i = 0; i < 17; ++i) ASSERT_TRUE(node.request(1, 0, unit));
    EXPECT_FALSE(node.try_send(2, 0));
    EXPECT_TRUE(node.try_request(2, 0)) << "a put";
    EXPECT_TRUE(node.request(2, 0)) << "a handler's";
    EXPECT_EQ(node.outbox.credits().requested(2), 3u);
    node.channel.refuse(1, false);
    node.outbox.go_on();
    EXPECT_TRUE(node.try_send(2, 0));
    node.channel.refuse(1);
    for (int i = 0; i < 17; ++i) ASSERT_TRUE(node.request(1, 0, unit));
    EXPECT_FALSE(node.try_send(2, 0));
    node.outbox.give_up(1);
    EXPECT_TRUE(node.try_send(2, 0));
}

TEST(Outbox, a_request_that_waits_says_how_much_waited_when_it_came_and_takes_those_before_it_along) {
    Sending node;
    EXPECT_TRUE(node.request(1, 0));
    EXPECT_EQ(node.pressures(), std::vector<std::uint32_t>{0}) << "it did not wait";
    node.channel.refuse(1);
    node.channel.refuse(2);
    for (int i = 0; i < 15; ++i) ASSERT_TRUE(node.request(1, 0, unit));
    node.channel.refuse(1, false);
    node.outbox.go_on();
    EXPECT_EQ(node.pressures(), std::vector<std::uint32_t>(15, 0));
    node.channel.refuse(1);
    for (int i = 0; i < 33; ++i) ASSERT_TRUE(node.request(1, 0, unit));
    ASSERT_TRUE(node.request(2, 0)); // after 33 units
    for (int i = 0; i < 200; ++i) node.reply(2, 0); // do not matter
    node.channel.refuse(1, false);
    node.channel.refuse(2, false);
    node.outbox.go_on();
    EXPECT_EQ(node.pressures(), std::vector<std::uint32_t>(34, 2));
    node.channel.refuse(2);
    ASSERT_TRUE(node.request(2, 0));
    node.channel.refuse(2, false);
    node.outbox.go_on();
    EXPECT_EQ(node.pressures(), std::vector<std::uint32_t>{0}) << "the others have gone";
    node.channel.refuse(1);
    for (int i = 0; i < 150; ++i) ASSERT_TRUE(node.request(1, 0, unit));
    node.channel.refuse(1, false);
    node.outbox.go_on();
    EXPECT_EQ(node.pressures().at(0), pressure_max) << "and no more than that";
}

TEST(Outbox, if_nothing_may_wait_whatever_waits_has_the_largest_pressure) {
    ScriptedChannel channel(2);
    Outbox outbox(channel, 0);
    EXPECT_FALSE(outbox.backlog().is_full());
    channel.refuse(1);
    auto message = outgoing(Kind::put, true, std::uint64_t{5});
    EXPECT_TRUE(outbox.request(1, message.bytes()));
    EXPECT_TRUE(outbox.backlog().is_full(pressure_max - 1));
    channel.refuse(1, false);
    outbox.go_on();
    Header header{};
    read_value(channel.take_sent().at(0).bytes, header);
    EXPECT_EQ(pressure_of(header), pressure_max);
}

TEST(Outbox, each_step_of_pressure_has_some_more_requests_under_way) {
    Sending node;
    for (std::uint32_t i = 0; i < requests_max; ++i) ASSERT_TRUE(node.try_request(1, i));
    node.sent();
    ASSERT_TRUE(node.request(1, 0)) << "without pressure it waits";
    EXPECT_FALSE(node.outbox.go_on());
    node.sent();
    for (std::uint32_t pressure = 1; pressure <= pressure_max; ++pressure) {
        const std::size_t wanted = pressure * few_bytes;
        while (node.outbox.backlog().bytes() < wanted) ASSERT_TRUE(node.request(1, 0, unit));
        EXPECT_TRUE(node.outbox.go_on());
        EXPECT_EQ(node.outbox.credits().under_way(1), requests_max + pressure * requests_per_pressure);
        EXPECT_EQ(node.pressures(), std::vector<std::uint32_t>(requests_per_pressure, pressure));
    }
}

TEST(Outbox, who_waits_for_credit_asks_for_it) {
    Sending node;
    for (std::uint32_t i = 0; i < requests_max; ++i) ASSERT_TRUE(node.try_request(1, i));
    ASSERT_TRUE(node.request(1, 99));
    node.sent();
    EXPECT_FALSE(node.outbox.go_on());
    EXPECT_FALSE(node.outbox.go_on());
    EXPECT_EQ(node.sent(), (std::vector<Sending::Sent>{{1, Kind::please, 0, 0}}));
}

// ---- plain messages

TEST(Outbox, what_the_program_has_taken_is_told_now_and_then) {
    Sending node;
    const std::size_t quarter = node.outbox.windows().bytes() / 4;
    node.outbox.on_plain_taken(1, false, quarter - 64);
    EXPECT_TRUE(node.sent().empty());
    node.outbox.on_plain_taken(1, true, 1000);
    EXPECT_TRUE(node.sent().empty());
    node.outbox.on_plain_taken(1, false, 0);
    const auto told = node.channel.take_sent();
    ASSERT_EQ(told.size(), 1u);
    Taken taken{};
    ASSERT_TRUE(read_value(Bytes(told[0].bytes).subspan(sizeof(Header)), taken));
    EXPECT_EQ(taken.bytes[0], quarter + 64);
    EXPECT_EQ(taken.bytes[1], 1064u);
    node.outbox.on_plain_taken(1, false, quarter - 64);
    EXPECT_TRUE(node.sent().empty());
}

TEST(Outbox, plain_messages_of_handlers_wait_in_order_for_room_and_for_the_receiver) {
    Sending node;
    node.channel.refuse(1);
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(node.keep_plain(1, i));
    EXPECT_FALSE(node.outbox.has_plain_room(1, false)) << "those that wait come first";
    EXPECT_FALSE(node.outbox.go_on());
    node.channel.refuse(1, false);
    EXPECT_TRUE(node.try_request(1, 50)) << "requests do not wait for them";
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.numbers(), (std::vector<std::uint64_t>{50, 0, 1, 2}));
    EXPECT_TRUE(node.outbox.has_plain_room(1, false));
    EXPECT_FALSE(node.outbox.has_waiting());
    node.outbox.windows().on_sent(1, Flow::forwarded, node.outbox.windows().bytes());
    ASSERT_TRUE(node.keep_plain(1, 3));
    EXPECT_FALSE(node.outbox.go_on());
    EXPECT_TRUE(node.outbox.windows().on_told(1, {{0, 1000, 0}}));
    EXPECT_TRUE(node.outbox.go_on());
    EXPECT_EQ(node.numbers(), std::vector<std::uint64_t>{3});
    node.outbox.windows().on_sent(1, Flow::forwarded, node.outbox.windows().bytes());
    EXPECT_FALSE(node.outbox.has_plain_room(1, true));
}

// ---- large requests

constexpr std::size_t large_body = 256 << 10;

/// Bytes of large requests of which `node` has told that it has handled them.
bool hear_taken(Sending& node, Node from, std::uint64_t bytes) {
    return node.outbox.windows().on_told(from, {{0, 0, bytes}});
}

TEST(Outbox, large_requests_wait_until_the_receiver_has_handled_earlier_ones_and_others_pass_them) {
    Sending node;
    auto message = outgoing(Kind::put, true, std::uint64_t{7});
    const std::size_t bytes = message.bytes().size() + large_body + ByteWindows::overhead;
    const auto try_large = [&](Node to) {
        return node.outbox.try_request(to, message.bytes(), Bytes(node.large).first(large_body));
    };
    std::size_t sent = 0;
    while (sent < 100 && try_large(1)) ++sent;
    EXPECT_EQ(sent, node.outbox.windows().bytes() / bytes + 1) << "one more than fit";
    EXPECT_TRUE(try_large(2)) << "each node has its own window";
    EXPECT_TRUE(node.try_request(1, 8)) << "small ones have credit";
    auto small = outgoing(Kind::put, true, std::uint64_t{9});
    EXPECT_TRUE(node.outbox.try_request(1, small.bytes(), Bytes(node.large).first(unit)));
    EXPECT_FALSE(node.outbox.try_send(1, message.bytes(), Bytes(node.large).first(large_body)));
    node.hear(1, sent + 2);
    EXPECT_FALSE(try_large(1)) << "credit is not enough";
    EXPECT_TRUE(hear_taken(node, 1, bytes));
    EXPECT_TRUE(try_large(1));
    EXPECT_FALSE(try_large(1));
    EXPECT_EQ(node.outbox.credits().requested(1), sent + 3) << "those that were refused were not counted";
}

TEST(Outbox, a_large_request_that_finds_no_credit_takes_nothing_of_the_window) {
    Sending node;
    auto message = outgoing(Kind::put, true, std::uint64_t{7});
    for (std::uint32_t i = 0; i < requests_max; ++i) ASSERT_TRUE(node.try_request(1, i));
    for (int i = 0; i < 100; ++i)
        ASSERT_FALSE(node.outbox.try_request(1, message.bytes(), Bytes(node.large).first(large_body)));
    node.hear(1, requests_max);
    EXPECT_TRUE(node.outbox.try_request(1, message.bytes(), Bytes(node.large).first(large_body)));
}

TEST(Outbox, large_requests_of_handlers_wait_for_the_window_and_pressure_widens_it) {
    Sending node(0); // the smallest windows
    const std::size_t bytes = sizeof(Header) + sizeof(std::uint64_t) + large_body + ByteWindows::overhead;
    const ByteWindows& windows = node.outbox.windows();
    std::size_t sent = 0;
    for (; node.outbox.backlog().bytes() == 0; ++sent) ASSERT_TRUE(node.request(1, sent, large_body));
    EXPECT_EQ(--sent, windows.bytes() / bytes + 1) << "the next one waits";
    EXPECT_FALSE(node.outbox.go_on());
    EXPECT_FALSE(node.try_request(1, 0)) << "in order";
    while (node.outbox.backlog().pressure() < 3) ASSERT_TRUE(node.request(1, sent, large_body));
    EXPECT_TRUE(node.outbox.go_on());
    const std::size_t widest = windows.bytes() + 3 * windows.pressure_step();
    EXPECT_EQ(node.outbox.credits().under_way(1), widest / bytes + 1);
    EXPECT_FALSE(node.outbox.go_on());
    EXPECT_FALSE(windows.has_room(1, Flow::large, 3)) << "all were counted";
    while (node.outbox.has_waiting()) {
        ASSERT_TRUE(hear_taken(node, 1, node.outbox.credits().requested(1) * bytes));
        ASSERT_TRUE(node.outbox.go_on()) << "there is room again";
    }
}

TEST(Outbox, large_requests_that_were_handled_are_told_now_and_then) {
    Sending node;
    const std::size_t quarter = node.outbox.windows().bytes() / 4;
    for (int i = 0; i < 10; ++i) node.outbox.on_handled(1, unit);
    EXPECT_TRUE(node.sent().empty()) << "small ones";
    std::size_t taken = 0;
    while (taken <= quarter) {
        EXPECT_TRUE(node.sent().empty());
        node.outbox.on_handled(1, large_body);
        taken += large_body + ByteWindows::overhead;
    }
    const auto told = node.channel.take_sent();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].peer, 1u);
    Header header{};
    Taken what{};
    ASSERT_TRUE(read_value(told[0].bytes, header));
    ASSERT_TRUE(read_value(Bytes(told[0].bytes).subspan(sizeof header), what));
    EXPECT_EQ(header.kind, static_cast<std::uint16_t>(Kind::taken));
    EXPECT_EQ(what.bytes[2], taken);
    EXPECT_EQ(what.bytes[0] + what.bytes[1], 0u);
}

/// A node whose program handles nothing keeps all that is sent to it.
TEST(Outbox, all_nodes_of_a_large_job_together_send_little_to_a_node_that_handles_nothing) {
    constexpr Node nodes = 1000;
    constexpr std::size_t message_max = request_bytes_max + head_bytes_max;
    const std::vector<std::byte> payload(message_max);
    for (const std::size_t size : {0u, 100u, 600u, 760u, 900u, 10'000u, 65'000u, 262'144u}) {
        ScriptedChannel channel(nodes, 0, message_max);
        Outbox outbox(channel);
        Outgoing<0> message(Kind::first_handler, true);
        std::size_t bytes = 0;
        while (outbox.try_send(1, message.bytes(), Bytes(payload).first(size))) bytes += sizeof(Header) + size;
        EXPECT_GT(bytes, size) << "more than one";
        const std::size_t heads = requests_max * head_bytes_max;
        EXPECT_LE(bytes, outbox.windows().bytes() + std::max(heads, message_max)) << size;
        EXPECT_LE(bytes * nodes, std::size_t{400} << 20) << size << ", where it were 32 GiB";
    }
}

// ---- loss

TEST(Outbox, what_a_lost_node_owes_is_not_waited_for_and_nothing_is_sent_to_it) {
    Sending node;
    for (std::uint32_t i = 0; i < requests_max; ++i) ASSERT_TRUE(node.try_request(1, i));
    ASSERT_TRUE(node.try_request(2, 0));
    ASSERT_TRUE(node.request(1, 0, 1000));
    node.channel.refuse(1);
    node.reply(1, 0);
    ASSERT_TRUE(node.keep_plain(1, 0));
    EXPECT_FALSE(node.outbox.credits().all_handled(1));
    node.outbox.give_up(1);
    EXPECT_TRUE(node.outbox.credits().all_handled(1));
    EXPECT_FALSE(node.outbox.credits().all_handled()) << "node 2 still owes";
    EXPECT_FALSE(node.outbox.credits().all_handled(2));
    EXPECT_EQ(node.outbox.backlog().bytes(), 0u);
    EXPECT_TRUE(node.hear(1, 50)) << "what it said before it was lost makes sense";
    EXPECT_EQ(node.outbox.credits().handled(1), requests_max) << "and is not counted again";
    EXPECT_TRUE(node.hear(2, 1));
    EXPECT_TRUE(node.outbox.credits().all_handled());
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
    EXPECT_FALSE(node.keep_plain(1, 0));
    EXPECT_FALSE(node.outbox.has_waiting());
    EXPECT_EQ(node.outbox.backlog().bytes(), 0u);
    EXPECT_TRUE(node.outbox.credits().all_handled());
}

} // namespace
} // namespace kumi::engine
