// Which threads are told, by sync(), that a node was lost: those that had sent what it may not have handled.

#include "kumi/base/sync/thread_number.hpp"
#include "kumi/engine/call/invoke.hpp"
#include "kumi/engine/dispatcher.hpp"
#include "loopback/other_thread.hpp"
#include "loopback/victim.hpp"

#include <array>
#include <atomic>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace kumi::engine::losses_test {
namespace {

using loopback::OtherThread;
using loopback::Victim;

/// Node 0 of three. This thread polls, and another one makes calls of its own.
class Losses : public testing::Test {
protected:
    Losses() : victim(handlers(), {}) {}
    Handlers handlers() {
        Handlers all;
        take.emplace(all.add("take", [](Call&) {}));
        forward.emplace(all.add("forward", [this](Call& call) { (void)call.engine().send(1, *take); }));
        square.emplace(all.function("square", [](long value) { return value * value; }));
        return all;
    }
    void send(Node to) { EXPECT_TRUE(victim.engine->send(to, *take)); }
    void lose(Node node) {
        victim.channel.lose(node);
        for (int i = 0; i < 2 * 256; ++i) victim.dispatcher->progress().poll();
    }
    /// What a sync() that waits for nothing says: "ok", or the code of its error.
    std::string sync() {
        const auto done = victim.dispatcher->operations().sync(now());
        return done ? "ok" : std::string(name_of(done.error().code()));
    }
    std::string sync_of_other() {
        std::string said;
        other.run([&] { said = sync(); });
        return said;
    }

    std::optional<Handler<>> take, forward;
    std::optional<Function<long(long)>> square;
    Victim victim;
    OtherThread other;
};

const std::string lost(name_of(ErrorCode::node_lost));

TEST_F(Losses, the_thread_that_sent_is_told_once_and_another_that_asks_first_is_not) {
    other.run([&] { send(1); });
    lose(1);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), lost);
    EXPECT_EQ(sync_of_other(), "ok");
}

TEST_F(Losses, all_threads_that_sent_are_told) {
    send(1);
    other.run([&] { send(1); });
    send(1);
    lose(1);
    EXPECT_EQ(sync_of_other(), lost);
    EXPECT_EQ(sync(), lost);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), "ok");
}

TEST_F(Losses, a_thread_whose_requests_were_handled_is_not_told) {
    send(1);
    other.run([&] { send(1); });
    victim.handled[1] = 1;
    victim.hears(1, Kind::credit);
    victim.poll();
    lose(1);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), lost);
}

TEST_F(Losses, requests_to_other_nodes_are_no_reason) {
    send(2);
    other.run([&] { send(1); });
    lose(1);
    EXPECT_EQ(sync(), "timed out") << "node 2 has not handled its request";
    EXPECT_EQ(sync_of_other(), lost);
}

TEST_F(Losses, a_thread_that_waits_for_a_flag_is_not_told_of_what_another_sent) {
    Flag flag = 0;
    other.run([&] { send(1); });
    lose(1);
    const auto waited = victim.engine->memory().wait(flag, 1, now());
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code(), ErrorCode::timed_out);
    EXPECT_EQ(sync_of_other(), lost);
}

TEST_F(Losses, requests_that_wait_for_room_are_told_of_too) {
    victim.channel.refuse(1);
    other.run([&] {
        const Turn turn = victim.dispatcher->take_turn(); // as in a handler
        send(1);
    });
    EXPECT_EQ(victim.under_way(1), 0u);
    lose(1);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), lost);
}

TEST_F(Losses, requests_that_waited_for_room_and_have_left_are_told_of_too) {
    victim.channel.refuse(1);
    other.run([&] {
        const Turn turn = victim.dispatcher->take_turn();
        send(1);
    });
    victim.channel.refuse(1, false);
    victim.poll();
    EXPECT_EQ(victim.under_way(1), 1u);
    lose(1);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), lost);
}

TEST_F(Losses, what_a_handler_sent_is_told_to_the_thread_that_ran_it) {
    const auto kind = static_cast<Kind>(static_cast<std::uint32_t>(Kind::first_handler) + forward->index());
    victim.hears(2, kind, true);
    other.run([&] { victim.poll(); });
    EXPECT_EQ(victim.under_way(1), 1u);
    lose(1);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), lost);
}

TEST_F(Losses, a_large_put_is_told_to_the_thread_that_began_it_whoever_sends_its_pieces) {
    const std::vector<std::byte> content(4 * chunk_bytes * requests_max);
    const auto made = victim.dispatcher->segments().add(content.size());
    ASSERT_TRUE(made);
    std::uint32_t number = 0;
    other.run([&] {
        number = base::thread_number();
        ASSERT_TRUE(victim.dispatcher->memory().start_put({1, made->id, 0}, content, {}));
    });
    victim.handled[1] = static_cast<std::uint16_t>(victim.under_way(1));
    victim.sent(Kind::put);
    victim.hears(1, Kind::credit);
    victim.poll(); // sends more
    const auto pieces = victim.sent(Kind::put);
    ASSERT_FALSE(pieces.empty());
    for (const auto& piece : pieces) EXPECT_EQ(thread_of(piece.header), number) << "a refusal goes there, too";
    lose(1);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), lost);
    EXPECT_EQ(sync_of_other(), "ok");
}

TEST_F(Losses, pieces_that_have_not_left_are_told_of_though_all_others_were_handled) {
    const std::vector<std::byte> content(4 * chunk_bytes);
    const auto made = victim.dispatcher->segments().add(content.size());
    ASSERT_TRUE(made);
    victim.channel.refuse(1);
    other.run([&] { ASSERT_TRUE(victim.dispatcher->memory().start_put({1, made->id, 0}, content, {})); });
    EXPECT_EQ(victim.under_way(1), 0u);
    lose(1);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), lost);
}

TEST_F(Losses, a_put_by_a_future_is_told_by_the_future_alone) {
    const std::vector<std::byte> content(4 * chunk_bytes);
    const auto made = victim.dispatcher->segments().add(content.size());
    ASSERT_TRUE(made);
    auto future = AsyncMemory(*victim.dispatcher).put(global_ptr<std::byte>(1, made->id, 0), std::span(content));
    EXPECT_EQ(victim.under_way(1), 4u);
    lose(1);
    ASSERT_TRUE(future.is_ready());
    EXPECT_EQ(future.get().error().code(), ErrorCode::node_lost);
    EXPECT_EQ(sync(), "ok");
}

TEST_F(Losses, parts_of_an_answer_are_told_to_nobody) {
    for (const Kind kind : {Kind::answer, Kind::answer_part, Kind::ask_part}) {
        const std::array<Header, 1> requests{header_of(kind, true)};
        victim.dispatcher->operations().note_unhandled(victim.dispatcher->take_turn(), 1, requests);
        EXPECT_EQ(sync(), kind == Kind::ask_part ? lost : "ok");
    }
}

TEST_F(Losses, an_offer_is_told_to_the_thread_that_made_it) {
    const std::uint64_t word = 0;
    other.run([&] {
        for (int i = 0; i < 2; ++i)
            ASSERT_TRUE(victim.dispatcher->rendezvous().offer(1, 1, bytes_of(word), nullptr, 1));
    });
    lose(1);
    EXPECT_EQ(sync(), "ok");
    EXPECT_EQ(sync_of_other(), lost);
    EXPECT_EQ(sync_of_other(), "ok");
}

/// Handlers run in the background, which never calls sync().
TEST(LossesInBackground, what_a_handler_sent_is_told_to_the_first_thread_that_asks) {
    std::optional<Handler<>> take;
    std::optional<Function<long(long)>> square;
    std::atomic<int> handled = 0;
    std::optional<Future<long>> future;
    Handlers handlers;
    take.emplace(handlers.add("take", [](Call&) {}));
    const auto sends = handlers.add("send", [&](Call& call) {
        (void)call.engine().send(1, *take);
        ++handled;
    });
    const auto asks = handlers.add("ask", [&](Call& call) {
        future.emplace(call.engine().invoke(2, *square, 3L));
        ++handled;
    });
    square.emplace(handlers.function("square", [](long value) { return value * value; }));
    Victim victim(std::move(handlers), {.in_background = true});
    int expected = 0;
    for (const auto& handler : {sends, asks}) {
        victim.hears(2, static_cast<Kind>(static_cast<std::uint32_t>(Kind::first_handler) + handler.index()), true);
        victim.channel.ring();
        ++expected;
        ASSERT_TRUE(loopback::comes_true([&] { return handled == expected; }));
    }
    victim.channel.lose(2);
    EXPECT_EQ(future->get(now() + loopback::far_away).error().code(), ErrorCode::node_lost);
    victim.channel.lose(1);
    const auto told = victim.engine->sync(now() + loopback::far_away);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code(), ErrorCode::node_lost);
    EXPECT_NE(told.error().text().find("node 1"), std::string::npos) << "the future told of node 2";
    EXPECT_TRUE(victim.engine->sync(now() + loopback::far_away));
}

} // namespace
} // namespace kumi::engine::losses_test
