// Messages of peers, believed as far as they make sense; and those that threads take in that wait for room.

#include "kumi/engine/receiving/arrivals.hpp"

#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>

namespace kumi::engine::arrivals_test {
namespace {

using loopback::Victim;

/// What is written to standard error meanwhile.
std::string said(const std::function<void()>& what) {
    testing::internal::CaptureStderr();
    what();
    return testing::internal::GetCapturedStderr();
}

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// ---- headers

TEST(Arrivals, credit_for_more_than_is_under_way_is_not_believed_and_what_comes_with_it_is_handled) {
    int handled = 0;
    Handlers handlers;
    const auto take = handlers.add("take", [&](Call&) { ++handled; });
    Victim victim(std::move(handlers));
    ASSERT_TRUE(victim.engine->send(1, take));
    ASSERT_TRUE(victim.engine->send(1, take));
    const std::string told = said([&] {
        for (const std::uint16_t lie : std::initializer_list<std::uint16_t>{3, 100, 0xffff, 0x8000}) {
            victim.handled[1] = lie;
            victim.hears(1, Kind::first_handler, true);
            victim.poll();
            EXPECT_EQ(victim.under_way(1), 2u) << lie;
        }
        victim.handled[2] = 1; // nothing was ever sent to it
        victim.hears(2, Kind::credit);
        victim.poll();
    });
    EXPECT_EQ(handled, 4);
    EXPECT_EQ(victim.under_way(2), 0u);
    EXPECT_TRUE(has(told, "can make nothing of a message of node 1")) << told;
    EXPECT_FALSE(has(told, "node 2")) << "the user is told once";
    EXPECT_FALSE(victim.dispatcher->operations().sync(now())) << "two are still under way";
    victim.handled[1] = 2;
    victim.hears(1, Kind::credit);
    victim.poll();
    EXPECT_TRUE(victim.dispatcher->operations().sync(now()));
}

TEST(Arrivals, messages_that_are_cut_or_of_no_kind_are_dropped_and_told) {
    int handled = 0;
    Handlers handlers;
    handlers.add("take", [&](Call&, std::uint64_t) { ++handled; });
    Victim victim(std::move(handlers));
    const auto hears_kind = [&](std::uint32_t kind, bool is_request) {
        victim.hears_bytes(1, static_cast<Kind>(kind), {}, {}, is_request);
        victim.poll();
        return victim.sent(Kind::failed).size();
    };
    (void)said([&] {
        for (const std::size_t bytes : {0u, 1u, 7u}) victim.channel.deliver(1, std::vector<std::byte>(bytes));
        victim.poll();
        EXPECT_TRUE(victim.channel.take_sent().empty());
        for (const std::uint32_t kind : {20u, 63u, 67u, 80u, 1000u, 65535u}) {
            EXPECT_EQ(hears_kind(kind, true), 1u) << kind;
            EXPECT_EQ(hears_kind(kind, false), 0u) << kind << ": who sends no request is told nothing";
        }
        // Each kind that has more than a header, cut.
        for (std::uint32_t kind = static_cast<std::uint32_t>(Kind::put);
             kind <= static_cast<std::uint32_t>(Kind::answer); ++kind)
            EXPECT_EQ(hears_kind(kind, true), static_cast<Kind>(kind) == Kind::nudge ? 0u : 1u) << kind;
        for (const Kind kind : {Kind::step, Kind::host_arrived, Kind::hopeless})
            EXPECT_EQ(hears_kind(static_cast<std::uint32_t>(kind), true), 1u);
        EXPECT_EQ(hears_kind(static_cast<std::uint32_t>(Kind::first_handler), true), 1u) << "its argument is missing";
    });
    EXPECT_EQ(handled, 0);
    victim.hears(1, Kind::first_handler, std::uint64_t{5});
    victim.poll();
    EXPECT_EQ(handled, 1);
}

TEST(Arrivals, each_request_is_counted_once_and_nothing_else_is) {
    Victim victim;
    for (int i = 0; i < 5; ++i) victim.hears(1, Kind::credit, true);
    for (int i = 0; i < 3; ++i) victim.hears(1, Kind::nudge, false);
    victim.hears(1, static_cast<Kind>(1000), true); // refused, and yet handled
    victim.poll();
    victim.channel.take_sent();
    victim.hears(1, Kind::please);
    victim.poll();
    const auto credit = victim.sent(Kind::credit);
    ASSERT_EQ(credit.size(), 1u);
    EXPECT_EQ(credit[0].header.handled, 6u);
}

TEST(Arrivals, plain_messages_wait_for_who_takes_them_and_keep_their_order) {
    Victim victim;
    for (const std::uint64_t number : {1u, 2u, 3u}) victim.hears(1, Kind::message, number, {}, false);
    victim.poll();
    std::vector<std::uint64_t> numbers;
    victim.dispatcher->messages().set_plain_handler([&](pm::Message& message) {
        std::uint64_t number = 0;
        EXPECT_TRUE(read_value(message.bytes(), number));
        EXPECT_EQ(message.source(), 1u);
        numbers.push_back(number);
    });
    victim.hears(1, Kind::message, std::uint64_t{4}, {}, false);
    victim.poll();
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

// ---- unread messages

/// A node whose handler notes numbers, and a thread of it that waits for room: it takes in what comes.
struct Taking {
    std::vector<std::uint64_t> numbers;
    std::vector<std::uint32_t> threads;
    Victim victim;

    Taking() : victim(handlers()) {}
    Handlers handlers() {
        Handlers all;
        all.add("take", [this](Call& call, std::uint64_t number) {
            Dispatcher& dispatcher = call.engine().dispatcher();
            const Turn turn = dispatcher.take_turn();
            numbers.push_back(number);
            threads.push_back(dispatcher.arrivals().thread_of_request(turn));
            if (number == 99) throw std::runtime_error("99");
        });
        return all;
    }
    Arrivals& arrivals() { return victim.dispatcher->arrivals(); }

    std::size_t take_in(Kind kind, std::uint64_t number, bool is_request = true, std::uint16_t handled = 0) {
        const Header header{static_cast<std::uint16_t>(kind), handled, is_request ? 5u << 1 | 1 : 0};
        std::vector<std::byte> bytes;
        for (const Bytes part : {bytes_of(header), bytes_of(number)})
            bytes.insert(bytes.end(), part.begin(), part.end());
        return take_in(bytes);
    }
    /// Returns how many messages were handled at once.
    std::size_t take_in(const std::vector<std::byte>& bytes) {
        const Turn turn = victim.dispatcher->take_turn();
        const std::size_t before = numbers.size();
        pm::Message message(1, bytes);
        arrivals().take_in(turn, message);
        return numbers.size() - before;
    }
    bool has_unread() {
        const Turn turn = victim.dispatcher->take_turn();
        return arrivals().has_unread(turn);
    }
    std::size_t read() {
        const Turn turn = victim.dispatcher->take_turn();
        return arrivals().read_unread(turn);
    }
    /// Of requests of node 1.
    std::uint64_t handled() {
        const Turn turn = victim.dispatcher->take_turn();
        return victim.dispatcher->outbox(turn).credits().handled_here(1);
    }
};

TEST(Arrivals, what_a_thread_takes_in_that_waits_for_room_is_kept_and_handled_in_order_by_another) {
    Taking node;
    EXPECT_FALSE(node.has_unread());
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(node.take_in(Kind::first_handler, i), 0u);
    EXPECT_TRUE(node.has_unread());
    EXPECT_EQ(node.handled(), 0u) << "not counted before it is handled";
    EXPECT_EQ(node.read(), 3u);
    EXPECT_EQ(node.numbers, (std::vector<std::uint64_t>{0, 1, 2}));
    EXPECT_EQ(node.threads, std::vector<std::uint32_t>(3, 5)) << "whose thread sent them";
    EXPECT_EQ(node.handled(), 3u);
    EXPECT_FALSE(node.has_unread());
    EXPECT_EQ(node.read(), 0u);
    node.take_in(Kind::first_handler, 3);
    node.victim.hears(1, Kind::first_handler, std::uint64_t{4});
    node.victim.poll();
    EXPECT_EQ(node.numbers, (std::vector<std::uint64_t>{0, 1, 2, 3, 4})) << "before what comes later";
}

TEST(Arrivals, credits_count_when_a_message_is_taken_in_and_not_again_when_it_is_read) {
    Taking node;
    const std::string told = said([&] { node.take_in(Kind::first_handler, 0, true, 7); });
    EXPECT_TRUE(has(told, "can make nothing of a message of node 1")) << "7 were never sent: " << told;
    EXPECT_EQ(said([&] { node.read(); }), "");
    EXPECT_EQ(node.numbers.size(), 1u) << "and yet it is handled";
}

TEST(Arrivals, messages_of_the_engine_itself_run_nothing_of_the_program_and_are_handled_at_once) {
    Taking node;
    node.take_in(Kind::credit, 0, false);
    node.take_in(Kind::please, 0, false);
    node.take_in(Kind::nudge, 0, true);
    EXPECT_FALSE(node.has_unread());
    EXPECT_EQ(node.handled(), 1u);
    const std::string told = said([&] { node.take_in(std::vector<std::byte>(sizeof(Header) - 1)); });
    EXPECT_TRUE(has(told, "can make nothing")) << "a message that is cut";
    EXPECT_FALSE(node.has_unread());
    for (const Kind kind : {Kind::message, Kind::forwarded, Kind::done}) {
        node.take_in(kind, 0, false);
        EXPECT_TRUE(node.has_unread()) << static_cast<int>(kind);
        (void)said([&] { node.read(); });
    }
}

TEST(Arrivals, an_unread_request_that_nobody_understands_or_that_throws_is_refused_to_its_sender) {
    Taking node;
    node.take_in(static_cast<Kind>(1000), 0);
    EXPECT_TRUE(node.victim.sent(Kind::failed).empty());
    node.read();
    EXPECT_TRUE(has(node.victim.refusal(1, request_of_thread(5)), "kind 1000"));
    node.take_in(Kind::first_handler, 99);
    node.read();
    EXPECT_TRUE(has(node.victim.refusal(1, request_of_thread(5)), "99"));
    EXPECT_EQ(node.handled(), 2u);
    const Turn turn = node.victim.dispatcher->take_turn();
    EXPECT_EQ(node.arrivals().thread_of_request(turn), 0u) << "none is being handled";
}

} // namespace
} // namespace kumi::engine::arrivals_test
