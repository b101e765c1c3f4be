// Messages of the program that are held back: while much waits to be sent, and until the program takes them.

#include "kumi/engine/dispatcher.hpp"

#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <stdexcept>

namespace kumi::engine::holding_test {
namespace {

using loopback::Victim;

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

constexpr std::size_t payload_bytes = 1000;

/// Node 0 of three, whose handlers forward what they get to node 1, which takes nothing at first. Some 10 messages may
/// wait before requests are held back.
struct Forwarder {
    std::vector<std::uint64_t> handled;
    std::optional<Handler<std::uint64_t, Bytes>> forward;
    Victim victim;

    Forwarder() : victim(handlers(), {.waiting_bytes_max = 10 * payload_bytes}) { victim.channel.refuse(1); }

    Handlers handlers() {
        Handlers all;
        forward = all.add("forward", [this](Call& call, std::uint64_t number, Bytes payload) {
            handled.push_back(number);
            (void)call.engine().send(1, *forward, number, payload); // at the end node 1 is lost
        });
        return all;
    }
    void hears(Node source, std::uint64_t number, std::uint32_t pressure = 0) {
        const std::vector<std::byte> payload(payload_bytes);
        victim.hears_request(source, Kind::first_handler, bytes_of(number), payload, pressure << pressure_shift | 1);
        victim.poll();
    }
    std::uint64_t handled_of(Node node) {
        victim.channel.take_sent();
        victim.hears(node, Kind::please);
        victim.poll();
        const auto told = victim.sent(Kind::credit);
        return told.empty() ? 0 : told.back().header.handled;
    }
    std::vector<std::uint64_t> forwarded() {
        std::vector<std::uint64_t> numbers;
        for (const auto& sent : victim.sent(Kind::first_handler)) numbers.push_back(sent.head<std::uint64_t>());
        return numbers;
    }
};

std::vector<std::uint64_t> first(std::uint64_t count) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(i);
    return numbers;
}

TEST(Holding, what_handlers_forward_is_kept_and_further_requests_are_held_uncounted_until_it_has_gone) {
    Forwarder node;
    for (std::uint64_t i = 0; i < 100; ++i) node.hears(2, i);
    EXPECT_EQ(node.handled, first(10)) << "then more waits than may";
    EXPECT_EQ(node.handled_of(2), 10u);
    node.victim.channel.refuse(1, false);
    node.victim.poll();
    EXPECT_EQ(node.handled, first(100));
    EXPECT_EQ(node.forwarded(), first(100)) << "in order, and none is lost";
    EXPECT_EQ(node.handled_of(2), 100u);
}

TEST(Holding, requests_of_more_pressure_are_held_back_later_and_take_those_before_them_along) {
    Forwarder node;
    for (std::uint64_t i = 0; i < 20; ++i) node.hears(2, i);
    EXPECT_EQ(node.handled.size(), 10u);
    node.hears(2, 20, 1);
    EXPECT_EQ(node.handled, first(20)) << "twice as much may wait, and all go in order";
    node.hears(2, 21, pressure_max);
    EXPECT_EQ(node.handled, first(22));
    node.hears(2, 22);
    EXPECT_EQ(node.handled, first(22)) << "those that come after it are held again";
    node.hears(2, 23, pressure_max);
    EXPECT_EQ(node.handled, first(24));
}

TEST(Holding, a_request_that_passes_a_held_one_is_not_counted_before_it) {
    Forwarder node;
    for (std::uint64_t i = 0; i < 11; ++i) node.hears(2, i);
    EXPECT_EQ(node.handled, first(10)) << "the last one is held";
    for (int i = 0; i < 5; ++i) {
        node.victim.hears(2, Kind::put, true); // without a place: refused, and so handled
        node.victim.poll();
    }
    const auto refused = node.victim.sent(Kind::failed);
    EXPECT_EQ(refused.size(), 5u);
    for (const auto& message : refused)
        EXPECT_EQ(message.header.handled, 10u) << "sync() of the thread that sent the 11th would be done";
    node.victim.hears(2, Kind::please);
    node.victim.poll();
    EXPECT_TRUE(node.victim.sent(Kind::credit).empty()) << "there is no news";
    node.victim.channel.refuse(1, false);
    node.victim.poll();
    EXPECT_EQ(node.handled, first(11));
    const auto told = node.victim.sent(Kind::credit);
    ASSERT_EQ(told.size(), 1u) << "it had asked";
    EXPECT_EQ(told[0].header.handled, 16u);
}

TEST(Holding, a_request_that_passes_held_ones_lends_them_its_pressure) {
    Forwarder node;
    for (std::uint64_t i = 0; i < 12; ++i) node.hears(2, i);
    EXPECT_EQ(node.handled, first(10));
    node.victim.hears_request(2, Kind::put, {}, {}, pressure_max << pressure_shift | 1);
    node.victim.poll();
    EXPECT_EQ(node.handled, first(12)) << "it takes a credit until they have been handled";
    EXPECT_EQ(node.handled_of(2), 13u);
    node.hears(2, 12);
    EXPECT_EQ(node.handled, first(12)) << "and those that come after it are held again";
}

TEST(Holding, threads_of_the_program_send_nothing_to_handlers_while_much_waits) {
    Forwarder node;
    const std::vector<std::byte> payload(10);
    for (std::uint64_t i = 0; i < 10; ++i) node.hears(2, i);
    loopback::Sleeper sender(node.victim, [&](Instant) {
        return node.victim.engine->send(2, *node.forward, std::uint64_t{5}, Bytes(payload)).has_value();
    });
    EXPECT_TRUE(node.victim.sent(Kind::first_handler).empty());
    node.victim.channel.refuse(1, false);
    node.victim.channel.ring();
    EXPECT_TRUE(sender.was_woken());
}

TEST(Holding, requests_of_one_source_are_handled_in_order_though_those_of_others_may_be_handled) {
    Forwarder node;
    for (std::uint64_t i = 0; i < 12; ++i) node.hears(2, i);
    node.hears(0, 100); // another source
    EXPECT_EQ(node.handled, first(10));
    node.victim.channel.refuse(1, false);
    node.victim.poll();
    auto expected = first(12);
    expected.push_back(100);
    EXPECT_EQ(node.handled, expected);
}

TEST(Holding, a_held_request_that_makes_no_sense_is_refused_and_counted) {
    Forwarder node;
    for (std::uint64_t i = 0; i < 10; ++i) node.hears(2, i);
    node.victim.hears(2, Kind::first_handler, true); // without arguments
    node.victim.poll();
    EXPECT_TRUE(node.victim.sent(Kind::failed).empty());
    node.victim.channel.refuse(1, false);
    node.victim.poll();
    const auto failed = node.victim.sent(Kind::failed);
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(failed[0].to, 2u);
    EXPECT_EQ(node.handled_of(2), 11u);
}

TEST(Holding, replies_are_handled_though_much_waits) {
    Forwarder node;
    for (std::uint64_t i = 0; i < 11; ++i) node.hears(2, i);
    const std::vector<std::byte> payload(10);
    node.victim.hears_request(2, Kind::first_handler, bytes_of(std::uint64_t{77}), payload, 0);
    node.victim.poll();
    EXPECT_EQ(node.handled.back(), 77u);
}

/// Large requests that are held back stay in their sender's window until they are handled.
TEST(Holding, large_requests_are_told_as_handled_when_they_are_and_not_while_they_are_held) {
    Forwarder node;
    const std::vector<std::byte> large(200'000);
    const auto hears = [&](std::uint64_t number) {
        node.victim.hears_request(2, Kind::first_handler, bytes_of(number), large, 1);
        node.victim.poll();
    };
    for (std::uint64_t i = 0; i < 20; ++i) hears(i);
    EXPECT_EQ(node.handled, first(1)) << "then much waits";
    EXPECT_TRUE(node.victim.sent(Kind::taken).empty());
    node.victim.channel.refuse(1, false);
    node.victim.poll();
    EXPECT_EQ(node.handled, first(20));
    const auto told = node.victim.sent(Kind::taken);
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back().to, 2u);
    const std::size_t each = sizeof(Header) + sizeof(std::uint64_t) + large.size() + ByteWindows::overhead;
    const std::uint64_t taken = told.back().head<Taken>().bytes[2];
    EXPECT_EQ(taken % each, 0u) << "as their sender counts them";
    EXPECT_GT(taken + (std::size_t{2} << 20), 20 * each) << "all but a quarter of a window";
}

TEST(Holding, large_requests_that_nobody_understands_are_told_as_handled_too) {
    Victim victim;
    const std::vector<std::byte> large(200'000);
    for (int i = 0; i < 11; ++i) victim.hears_request(1, Kind::first_handler, {}, large, 1);
    victim.poll();
    EXPECT_EQ(victim.sent(Kind::taken).size(), 1u);
}

// ---- plain messages

struct Plain {
    std::vector<std::uint64_t> numbers;
    Victim victim;
    Plain() : victim({}, {.waiting_bytes_max = 10 * payload_bytes}) {}
    explicit Plain(Handlers&& handlers) : victim(std::move(handlers), {.waiting_bytes_max = 10 * payload_bytes}) {}

    void hears(Node source, std::uint64_t number, Kind kind = Kind::message, std::size_t bytes = 0) {
        const std::vector<std::byte> rest(bytes);
        victim.hears_bytes(source, kind, bytes_of(number), rest, false);
        victim.poll();
    }
    static std::uint64_t number_of(pm::Message& message) {
        std::uint64_t number = 0;
        EXPECT_TRUE(read_value(message.bytes(), number));
        return number;
    }
    ActiveMessages& messages() { return victim.dispatcher->messages(); }
    void take() {
        messages().set_plain_handler([this](pm::Message& message) { numbers.push_back(number_of(message)); });
    }
    Result<void> send(Node to, std::uint64_t number) {
        const Bytes bytes = bytes_of(number);
        return messages().send_plain(to, {&bytes, 1});
    }
    /// How much of the messages of a node was told to have been taken.
    std::uint64_t taken() {
        const auto told = victim.sent(Kind::taken);
        return told.empty() ? 0 : told.back().head<Taken>().bytes[0];
    }
};

TEST(Holding, plain_messages_that_nobody_takes_are_not_told_as_taken_and_requests_pass_them) {
    int handled = 0;
    Handlers handlers;
    handlers.add("take", [&](Call&) { ++handled; });
    Plain node(std::move(handlers));
    for (std::uint64_t i = 0; i < 100; ++i) node.hears(1, i, Kind::message, 100'000);
    EXPECT_EQ(node.taken(), 0u);
    node.victim.hears(1, Kind::first_handler, true);
    node.victim.poll();
    EXPECT_EQ(handled, 1);
    node.take();
    EXPECT_TRUE(node.numbers.empty()) << "the caller may be a handler";
    node.victim.poll();
    EXPECT_EQ(node.numbers, first(100));
    EXPECT_GE(node.taken(), 7'000'000u);
}

TEST(Holding, a_sender_waits_until_the_receiver_takes_plain_messages) {
    Plain node;
    const std::vector<std::byte> large(1'000'000);
    const Bytes bytes = large;
    std::size_t sent = 0;
    std::thread sender([&] {
        for (; sent < 20; ++sent)
            if (!node.messages().send_plain(1, {&bytes, 1})) break;
    });
    std::size_t messages = 0;
    const auto have_left = [&](std::size_t count) {
        return loopback::comes_true([&] {
            messages += node.victim.channel.take_sent().size();
            return messages >= count && node.victim.channel.is_asleep();
        });
    };
    EXPECT_TRUE(have_left(9)) << "the first that is beyond 8 MiB is the last";
    node.victim.hears(1, Kind::taken, Taken{{9 << 20, 0, 0}}, {}, false); // more than was sent: nobody believes it
    node.victim.hears(1, Kind::taken, Taken{{4 << 20, 0, 0}}, {}, false);
    node.victim.channel.ring();
    EXPECT_TRUE(have_left(13));
    EXPECT_EQ(messages, 13u);
    node.victim.channel.lose(1);
    node.victim.channel.ring();
    sender.join();
    EXPECT_EQ(sent, 13u) << "four more, and then an error";
}

TEST(Holding, messages_to_this_node_itself_are_refused_when_too_many_wait_and_nobody_takes_them) {
    Plain node;
    const std::vector<std::byte> large(1'000'000);
    const Bytes bytes = large;
    Result<void> sent;
    std::size_t count = 0;
    for (; sent && count < 20; ++count) sent = node.messages().send_plain(0, {&bytes, 1});
    EXPECT_EQ(count, 10u);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code(), ErrorCode::misuse);
    EXPECT_TRUE(has(sent.error().text(), "on_message")) << sent.error().text();
}

TEST(Holding, plain_messages_from_a_handler_go_later_if_there_is_no_room_and_are_kept_in_order) {
    Plain* self = nullptr;
    std::uint64_t next = 0;
    std::vector<bool> sent;
    Handlers handlers;
    handlers.add("send", [&](Call&) { sent.push_back(self->send(1, next++).has_value()); });
    Plain node(std::move(handlers));
    self = &node;
    node.victim.channel.refuse(1);
    for (int i = 0; i < 3; ++i) node.victim.hears(2, Kind::first_handler, true);
    node.victim.poll();
    EXPECT_EQ(sent, std::vector<bool>(3, true));
    EXPECT_TRUE(node.victim.sent(Kind::forwarded).empty());
    node.victim.channel.refuse(1, false);
    node.victim.hears(2, Kind::first_handler, true);
    node.victim.poll();
    std::vector<std::uint64_t> numbers;
    for (const auto& message : node.victim.sent(Kind::forwarded)) numbers.push_back(message.head<std::uint64_t>());
    EXPECT_EQ(numbers, first(4));
    node.victim.channel.lose(1);
    node.victim.hears(2, Kind::first_handler, true);
    node.victim.poll();
    EXPECT_FALSE(sent.back()) << "the node is lost";
}

TEST(Holding, plain_messages_are_held_while_much_waits_unless_a_handler_sent_them) {
    Forwarder node;
    std::vector<std::uint64_t> numbers;
    node.victim.dispatcher->messages().set_plain_handler(
        [&](pm::Message& message) { numbers.push_back(Plain::number_of(message)); });
    const auto hears = [&](std::uint64_t number, Kind kind) {
        node.victim.hears(2, kind, number, {}, false);
        node.victim.poll();
    };
    hears(0, Kind::message);
    for (std::uint64_t i = 0; i < 10; ++i) node.hears(2, i);
    hears(1, Kind::message);
    EXPECT_EQ(numbers, first(1));
    hears(2, Kind::forwarded);
    EXPECT_EQ(numbers, first(3)) << "and those before it";
    hears(3, Kind::forwarded);
    EXPECT_EQ(numbers, first(4));
    hears(4, Kind::message);
    EXPECT_EQ(numbers, first(4));
    node.victim.channel.refuse(1, false);
    node.victim.poll();
    EXPECT_EQ(numbers, first(5));
}

// ---- what the program's function does

TEST(Holding, the_function_for_plain_messages_may_replace_itself) {
    Plain node;
    const auto large = std::make_shared<std::vector<std::uint64_t>>(1000, 7);
    node.messages().set_plain_handler([&node, large, old = std::weak_ptr(large)](pm::Message& message) {
        node.numbers.push_back(100 + Plain::number_of(message));
        node.take();
        EXPECT_FALSE(old.expired());
        EXPECT_EQ(large->at(999), 7u) << "what it has is there while it runs";
    });
    for (std::uint64_t i = 0; i < 3; ++i) node.hears(1, i);
    EXPECT_EQ(node.numbers, (std::vector<std::uint64_t>{100, 1, 2}));
    EXPECT_EQ(large.use_count(), 1) << "it is gone";
}

TEST(Holding, whatever_the_function_for_plain_messages_throws_is_told_by_sync_and_ends_nothing) {
    Plain node;
    node.messages().set_plain_handler([&](pm::Message& message) {
        node.numbers.push_back(Plain::number_of(message));
        if (node.numbers.size() == 1) throw std::runtime_error("no such thing");
        if (node.numbers.size() == 2) throw 5;
    });
    const auto sync = [&] { return node.victim.dispatcher->operations().sync(now()); };
    node.hears(1, 0);
    const auto told = sync();
    ASSERT_FALSE(told);
    EXPECT_TRUE(has(told.error().text(), "node 1") && has(told.error().text(), "no such thing")) << told.error().text();
    node.hears(2, 1);
    EXPECT_FALSE(sync());
    node.hears(1, 2);
    EXPECT_TRUE(sync());
    EXPECT_EQ(node.numbers, first(3));
}

} // namespace
} // namespace kumi::engine::holding_test
