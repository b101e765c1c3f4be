// Puts of several threads of a node, which do not wait for each other (engine/sending/late_puts.hpp), in every world.
// They go to exposed memory, so that they are messages also where nodes share memory.

#include "engine/node.hpp"

#include <thread>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class LatePuts : public EngineTest {
protected:
    static constexpr std::size_t bytes_max = engine::LatePuts::bytes_max;

    static void in_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < count; ++i)
            threads.emplace_back([&, i] {
                try {
                    body(i);
                } catch (const Stop&) {
                }
            });
        for (std::thread& thread : threads) thread.join();
    }
    /// Two threads of the program use the engine from now on, so that threads leave puts.
    static void share(Engine& engine) {
        engine.poll();
        in_threads(1, [&](std::size_t) { engine.poll(); });
    }
};

/// Node 0 has no background, so nothing is sent for it later.
TEST_P(LatePuts, do_not_wait_for_a_thread_that_has_the_turn_and_arrive_without_another_call) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel, {}, {.in_background = channel.self() != 0});
        auto memory = engine.memory();
        std::vector<std::byte> mine(2 * bytes_max);
        const auto all = exchange(engine, good(memory.expose(mine)));
        const auto arrived = good(memory.segment<Flag>(1));
        const auto at = good(memory.segment<std::int64_t>(1)); // when node 1 saw it
        if (engine.node() == 0) {
            share(engine);
            {
                const engine::Turn turn = engine.dispatcher().take_turn();
                in_threads(1, [&](std::size_t) {
                    good(memory.put(all[1], pattern(bytes_max, 1)));
                    good(memory.put(all[1] + bytes_max, pattern(bytes_max, 2), Notice::set(arrived.at(1), 1)));
                }); // ends, though this thread has the turn
            }
            const bool is_sent_once = GetParam().name == "udp"; // elsewhere this node may have to send again
            if (is_sent_once) std::this_thread::sleep_for(500ms);
            const std::int64_t here = now().time_since_epoch().count();
            settle(engine);
            EXPECT_TRUE(!is_sent_once || at[0] < here) << "a put with a notice does not wait for more to send";
        } else {
            good(memory.wait(arrived[0], 1, deadline()));
            const std::int64_t here = now().time_since_epoch().count();
            EXPECT_TRUE(is_pattern(std::span(mine).first(bytes_max), 1));
            EXPECT_TRUE(is_pattern(std::span(mine).last(bytes_max), 2));
            good(memory.write(at.at(0), here));
            settle(engine);
        }
    });
}

TEST_P(LatePuts, of_a_thread_are_there_before_what_the_thread_sends_afterwards) {
    run(2, [](Channel& channel) {
        constexpr std::size_t threads = 4;
        const std::uint64_t rounds = 500 * scale;
        std::vector<std::uint64_t> mine(threads);
        Handlers handlers;
        std::atomic<std::uint64_t> handled{0};
        const auto look = handlers.add("look", [&](Call&, std::size_t thread, std::uint64_t round) {
            EXPECT_GE(mine.at(thread), round);
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        auto memory = engine.memory();
        const auto all = exchange(engine, good(memory.expose(mine)));
        if (engine.node() == 0)
            in_threads(threads, [&](std::size_t thread) {
                for (std::uint64_t round = 1; round <= rounds; ++round) {
                    good(memory.write(all[1] + static_cast<std::ptrdiff_t>(thread), round));
                    if (round % 7 == 0) good(engine.send(1, look, thread, round));
                    if (round % 50 != 0) continue;
                    good(engine.sync(deadline()));
                    EXPECT_EQ(good(memory.read(all[1] + static_cast<std::ptrdiff_t>(thread))), round);
                }
            });
        else EXPECT_TRUE(engine.wait_until([&] { return handled == threads * (rounds / 7); }, deadline()));
        settle(engine);
        if (engine.node() == 0) return;
        EXPECT_EQ(mine, std::vector<std::uint64_t>(threads, rounds));
    });
}

/// This node hears of no credit while a thread has the turn.
TEST_P(LatePuts, are_not_left_where_others_wait_for_room) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        std::vector<std::uint64_t> mine(2);
        const auto all = exchange(engine, good(memory.expose(mine)));
        if (engine.node() == 0) {
            share(engine);
            std::atomic<bool> has_put{false};
            std::thread other;
            {
                const engine::Turn turn = engine.dispatcher().take_turn(); // so this thread does not wait for room
                for (std::uint64_t i = 1; i <= 2 * engine::requests_max; ++i) good(memory.write(all[1], i));
                other = std::thread([&] {
                    EXPECT_TRUE(memory.write(all[1] + 1, 7));
                    has_put = true;
                });
                std::this_thread::sleep_for(30ms);
                EXPECT_FALSE(has_put) << "it is to wait for room";
            }
            other.join();
            settle(engine);
        } else {
            settle(engine);
            EXPECT_EQ(mine[0], 2 * engine::requests_max);
            EXPECT_EQ(mine[1], 7u);
        }
    });
}

TEST_P(LatePuts, that_are_refused_are_errors_of_their_thread) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        std::uint64_t mine = 0;
        const auto all = exchange(engine, good(memory.expose(std::span(&mine, 1))));
        if (engine.node() == 1) good(memory.conceal(all[1]));
        settle(engine);
        if (engine.node() == 1) return;
        share(engine);
        std::thread other;
        {
            const engine::Turn turn = engine.dispatcher().take_turn();
            other = std::thread([&] {
                EXPECT_TRUE(memory.write(all[1], 1));
                expect_code(engine.sync(deadline()), ErrorCode::not_found, {"put"});
            });
            std::this_thread::sleep_for(30ms);
        }
        other.join();
        good(engine.sync(deadline())); // this thread has put nothing
    });
}

TEST_P(LatePuts, to_a_node_that_has_left_meanwhile_are_errors_of_their_thread) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        std::uint64_t mine = 0;
        const auto all = exchange(engine, good(memory.expose(std::span(&mine, 1))));
        if (engine.node() == 1) return; // leaves
        share(engine);
        Result<void> outcome;
        for (const Instant end = deadline(); outcome && now() < end;) { // mostly the first time
            std::thread other;
            {
                const engine::Turn turn = engine.dispatcher().take_turn(); // so this node does not know
                std::this_thread::sleep_for(20ms);
                other = std::thread([&] {
                    outcome = memory.write(all[1], 1);
                    if (outcome) outcome = engine.sync(deadline());
                });
                std::this_thread::sleep_for(20ms);
            }
            other.join();
        }
        expect_code(outcome, ErrorCode::node_lost, {"node 1"});
        good(engine.sync(deadline())); // this thread has put nothing
    });
}

KUMI_ENGINE_WORLDS(LatePuts);

} // namespace
} // namespace kumi::engine_test
