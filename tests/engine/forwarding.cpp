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
