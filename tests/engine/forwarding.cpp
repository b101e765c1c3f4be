// Handlers that send further requests: nothing is lost, memory is bounded and nobody blocks; in every world.

#include "engine/node.hpp"

#include <atomic>
#include <optional>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class Forwarding : public EngineTest {};

constexpr std::size_t few_bytes = 64 << 10; // may wait to be sent

std::size_t waiting_bytes(Call& call) {
    engine::Dispatcher& dispatcher = call.engine().dispatcher();
    const auto turn = dispatcher.take_turn();
    return dispatcher.outbox(turn).backlog().bytes();
}

TEST_P(Forwarding, a_chain_to_a_slow_node_loses_nothing_and_keeps_little) {
    run(4, [](Channel& channel) {
        const std::uint64_t count = 100 * scale;
        constexpr std::size_t bytes = 5000;
        const Node self = channel.self();
        std::uint64_t arrived = 0;
        std::size_t most = 0;
        Handlers handlers;
        std::optional<Handler<std::uint64_t, Bytes>> pass;
        pass = handlers.add("pass", [&](Call& call, std::uint64_t number, Bytes payload) {
            if (self == 3) {
                EXPECT_EQ(number, arrived++);
                EXPECT_TRUE(is_pattern(payload, number));
                if (number % 50 == 0) std::this_thread::sleep_for(2ms);
                return;
            }
            good(call.engine().send(self + 1, *pass, number, payload));
            most = std::max(most, waiting_bytes(call));
        });
        Engine engine = open(channel, std::move(handlers), {.waiting_bytes_max = few_bytes});
        good(engine.barrier(deadline()));
        if (self == 0)
            for (std::uint64_t i = 0; i < count; ++i) good(engine.send(1, *pass, i, Bytes(pattern(bytes, i))));
        if (self == 3) {
            EXPECT_TRUE(engine.wait_until([&] { return arrived == count; }, deadline())) << arrived << " of " << count;
        }
        good(engine.barrier(deadline()));
        // Node 2 gets requests of pressure 1: twice as much may wait there.
        EXPECT_LE(most, (self == 2 ? 2 : 1) * few_bytes + bytes + 100);
        settle(engine);
    });
}

TEST_P(Forwarding, tokens_that_go_round_with_hardly_any_room_all_arrive) {
    run(3, [](Channel& channel) {
        const std::uint64_t tokens = 40 * scale;
        std::uint64_t ended = 0;
        Handlers handlers;
        std::optional<Handler<std::uint32_t, Node, Bytes>> hop;
        const auto end = handlers.add("end", [&](Call&) { ++ended; });
        hop = handlers.add("hop", [&](Call& call, std::uint32_t left, Node origin, Bytes payload) {
            Engine& engine = call.engine();
            if (left == 0) good(engine.send(origin, end));
            else good(engine.send((engine.node() + 1) % engine.nodes(), *hop, left - 1, origin, payload));
        });
        Engine engine = open(channel, std::move(handlers), {.waiting_bytes_max = 1000});
        good(engine.barrier(deadline()));
        const std::vector<std::byte> payload(1000);
        for (std::uint64_t i = 0; i < tokens; ++i)
            good(engine.send((engine.node() + 1) % 3, *hop, 20u, engine.node(), Bytes(payload)));
        EXPECT_TRUE(engine.wait_until([&] { return ended == tokens; }, deadline())) << ended << " of " << tokens;
        settle(engine);
    });
}

TEST_P(Forwarding, a_handler_reaches_its_engine_which_stays_the_same_when_the_program_moves_its_own) {
    run(2, [](Channel& channel) {
        int answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call) { good(call.engine().send(call.source(), answer)); });
        Engine first = open(channel, std::move(handlers));
        good(first.barrier(deadline()));
        good(first.send(1 - first.node(), ask));
        Engine engine = std::move(first);
        good(engine.send(1 - engine.node(), ask));
        EXPECT_TRUE(engine.wait_until([&] { return answers == 2; }, deadline()));
        settle(engine);
    });
}

TEST_P(Forwarding, sending_runs_no_handlers_in_the_thread_that_sends) {
    run(2, [](Channel& channel) {
        const long count = 300 * scale;
        std::atomic<std::thread::id> sender{};
        std::atomic<long> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, Bytes) {
            EXPECT_NE(sender.load(), std::this_thread::get_id());
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        engine.dispatcher().messages().set_plain_handler([&](pm::Message&) {
            EXPECT_NE(sender.load(), std::this_thread::get_id());
            ++handled;
        });
        good(engine.barrier(deadline()));
        const std::vector<std::byte> payload(3000);
        const Bytes bytes = payload;
        sender = std::this_thread::get_id();
        for (long i = 0; i < count; ++i) { // both nodes at once: neither has room before the other has handled
            good(engine.send(1 - engine.node(), take, bytes));
            good(engine.dispatcher().messages().send_plain(1 - engine.node(), {&bytes, 1}));
        }
        sender = std::thread::id{};
        EXPECT_TRUE(engine.wait_until([&] { return handled == 2 * count; }, deadline())) << handled;
        settle(engine);
    });
}

TEST_P(Forwarding, a_reply_that_is_too_large_fails_at_the_node_that_asked_also_if_the_handler_is_noexcept) {
    run(2, [](Channel& channel) {
        int answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&, Bytes) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call, std::uint64_t more) noexcept {
            call.reply(answer, Bytes(std::vector<std::byte>(call.engine().message_bytes_max() + more)));
            EXPECT_TRUE(call.has_replied());
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        const Node other = 1 - engine.node();
        good(engine.send(other, ask, std::uint64_t{1}));
        const auto told = engine.sync(deadline());
        expect_error(told, {"node " + std::to_string(other), "ask", "largest"});
        EXPECT_TRUE(!told && told.error().code() == ErrorCode::too_large);
        good(engine.send(other, ask, std::uint64_t{0}));
        EXPECT_TRUE(engine.wait_until([&] { return answers == 1; }, deadline()));
        settle(engine);
    });
}

TEST_P(Forwarding, a_message_that_was_kept_stays_what_it_was_though_the_function_then_throws) {
    run(2, [](Channel& channel) {
        constexpr std::uint64_t count = 12;
        pm::KeptMessage kept;
        std::uint64_t heard = 0;
        Engine engine = open(channel);
        engine.dispatcher().messages().set_plain_handler([&](pm::Message& message) {
            if (++heard != 1) return;
            kept = message.keep();
            throw 7;
        });
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            for (std::uint64_t i = 0; i < count; ++i) {
                const auto content = pattern(std::min<std::size_t>(60'000, channel.traits().message_bytes_max / 4), i);
                const Bytes all = content;
                good(engine.dispatcher().messages().send_plain(1, {&all, 1}));
                if (i == 0) good(engine.barrier(deadline()));
                if (GetParam().name == "tiny_shmem") break; // has buffers for one, which is kept
            }
        } else {
            EXPECT_TRUE(engine.wait_until([&] { return heard != 0; }, deadline()));
            good(engine.barrier(deadline()));
            const std::uint64_t expected = GetParam().name == "tiny_shmem" ? 1 : count;
            EXPECT_TRUE(engine.wait_until([&] { return heard == expected; }, deadline())) << heard;
            EXPECT_TRUE(kept && is_pattern(kept.bytes(), 0)) << "its buffer was used again";
            kept = {};
            const auto told = engine.sync(deadline());
            expect_error(told, {"on_message", "node 0"});
        }
        good(engine.barrier(deadline()));
    });
}

KUMI_ENGINE_WORLDS(Forwarding);

} // namespace
} // namespace kumi::engine_test
