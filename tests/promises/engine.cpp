// What engine/engine.hpp promises: each test is one promise, in every world. This file has threads, requests, functions
// and progress. Sync is in engine_sync.cpp, and barriers are in engine_barriers.cpp. Of mutexes: engine/mutexes.cpp; of
// nodes that leave or die: engine/departures.cpp.

#include "engine/node.hpp"

#include "kumi/engine/call/invoke.hpp"

#include <atomic>
#include <optional>
#include <stdexcept>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class EnginePromises : public EngineTest {};

// ---- threads

TEST_P(EnginePromises, a_call_that_would_wait_is_refused_inside_a_handler) {
    run(2, [](Channel& channel) {
        std::atomic<int> handled{0};
        Flag never_set = 0;
        Segment<std::uint64_t> words;
        Handlers handlers;
        std::optional<Function<int()>> seven;
        seven = handlers.function("seven", [] { return 7; });
        const auto misbehave = handlers.add("misbehave", [&](Call& call) {
            Engine& engine = call.engine();
            auto memory = engine.memory();
            const Instant begin = now();
            expect_code(engine.sync(), ErrorCode::misuse, {"handler"});
            expect_code(engine.barrier(), ErrorCode::misuse, {"handler"});
            expect_code(engine.wait(BarrierToken{}), ErrorCode::misuse, {"handler"});
            expect_code(memory.wait(never_set), ErrorCode::misuse, {"handler"});
            expect_code(memory.segment<int>(10), ErrorCode::misuse, {"handler"});
            expect_code(memory.free(words), ErrorCode::misuse, {"handler"});
            expect_code(engine.invoke(call.source(), *seven).get(), ErrorCode::misuse, {"handler"});
            EXPECT_FALSE(engine.wait_until([] { return false; })) << "as if the deadline had come";
            EXPECT_EQ(engine.poll(), 0u);
            // Memory of this host is read at once; to read that of others would be to wait.
            if (const auto read = memory.read(words.at(call.source())); !read)
                expect_code(read, ErrorCode::misuse, {"handler"});
            if (const auto added = memory.fetch_add(words.at(call.source()), 0); !added)
                expect_code(added, ErrorCode::misuse, {"handler"});
            EXPECT_LT(now() - begin, 5s);
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        words = good(engine.memory().segment<std::uint64_t>(1));
        good(engine.barrier(deadline()));
        good(engine.send(1 - engine.node(), misbehave));
        good(engine.send(engine.node(), misbehave));
        EXPECT_TRUE(engine.wait_until([&] { return handled == 2; }, deadline()));
        settle(engine);
    });
}

TEST_P(EnginePromises, a_call_that_does_not_wait_is_allowed_inside_a_handler) {
    run(3, [](Channel& channel) {
        std::atomic<int> told{0};
        std::atomic<bool> has_read{false}, has_answer{false};
        Segment<std::uint64_t> words;
        Flag synced = 0, got = 0;
        std::uint64_t target = 0;
        std::optional<BarrierToken> token;
        Handlers handlers;
        const auto seven = handlers.function("seven", [] { return 7; });
        const auto tell = handlers.add("tell", [&](Call&) { ++told; });
        const auto act = handlers.add("act", [&](Call& call) {
            Engine& engine = call.engine();
            auto memory = engine.memory();
            const Node next = (engine.node() + 1) % engine.nodes();
            good(engine.send(next, tell));
            good(memory.write(words.at(next, 1), engine.node() + 10u));
            good(memory.set_flag(words.at(next, 2), 5));
            good(memory.start_get(words.at(next), {&target, 1}, &got));
            (void)memory.async().read(words.at(next)).then([&](Result<std::uint64_t> value) {
                has_read = value && *value == 77;
            });
            (void)engine.invoke(next, seven).then([&](Result<int> value) { has_answer = value && *value == 7; });
            good(engine.start_sync(synced));
            token = engine.arrive();
            (void)engine.test(*token);
            engine.flush();
        });
        Engine engine = open(channel, std::move(handlers));
        words = good(engine.memory().segment<std::uint64_t>(3));
        words[0] = 77;
        good(engine.barrier(deadline()));
        good(engine.send((engine.node() + 1) % 3, act));
        EXPECT_TRUE(engine.wait_until([&] { return told == 1 && has_read && has_answer; }, deadline()));
        good(engine.memory().wait(got, 1, deadline()));
        EXPECT_EQ(target, 77u);
        good(engine.memory().wait(synced, 1, deadline())); // what this node's handler has put is there
        good(engine.wait(*token, deadline()));
        good(engine.barrier(deadline()));
        const Node before = (engine.node() + 2) % 3;
        EXPECT_EQ(load_flag(words[1]), before + 10u);
        EXPECT_EQ(load_flag(words[2]), 5u);
        settle(engine);
    });
}

TEST_P(EnginePromises, every_call_may_come_from_any_thread) {
    run(2, [](Channel& channel) {
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        const auto seven = handlers.function("seven", [] { return 7; });
        Engine engine = open(channel, std::move(handlers));
        const auto words = good(engine.memory().segment<std::uint64_t>(4));
        const Node other = 1 - engine.node();
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < 4; ++i)
            threads.emplace_back([&, i] {
                try {
                    for (std::uint64_t round = 1; round <= 20; ++round) {
                        good(engine.memory().write(words.at(other, i), round));
                        good(engine.send(other, take));
                        good(engine.sync(deadline()));
                        EXPECT_EQ(good(engine.memory().read(words.at(other, i))), round);
                        EXPECT_EQ(good(engine.invoke(other, seven).get(deadline())), 7);
                    }
                } catch (const Stop&) {
                }
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_TRUE(engine.wait_until([&] { return handled == 80; }, deadline())) << handled;
        settle(engine);
    });
}

TEST_P(EnginePromises, many_threads_of_a_node_send_at_once_and_handlers_run_one_at_a_time) {
    run(2, [](Channel& channel) {
        const long count = 200 * scale;
        constexpr long threads = 4;
        long handled = 0; // not atomic
        std::atomic<int> inside{0};
        std::array<long, threads> next{};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, long thread, long number) {
            EXPECT_EQ(++inside, 1);
            EXPECT_EQ(number, next.at(static_cast<std::size_t>(thread))++);
            ++handled;
            --inside;
        });
        Engine engine = open(channel, std::move(handlers));
        std::vector<std::thread> others;
        for (long thread = 0; thread < threads; ++thread)
            others.emplace_back([&, thread] {
                try {
                    for (long i = 0; i < count; ++i) good(engine.send(1 - engine.node(), take, thread, i));
                    good(engine.sync());
                } catch (const Stop&) {
                }
            });
        for (std::thread& other : others) other.join();
        EXPECT_TRUE(engine.wait_until([&] { return handled == threads * count; }, deadline())) << handled;
        settle(engine);
    });
}

TEST_P(EnginePromises, a_node_that_computes_still_answers) {
    run(2, [](Channel& channel) {
        std::atomic<bool> is_over{false};
        int answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call) { call.reply(answer); });
        const auto over = handlers.add("over", [&](Call&) { is_over = true; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier());
        if (engine.node() == 0) {
            for (int i = 0; i < 20; ++i) {
                good(engine.send(1, ask));
                EXPECT_TRUE(engine.wait_until([&] { return answers == i + 1; }, deadline()));
            }
            good(engine.send(1, over));
        } else { // calls nothing of the engine's
            for (const Instant end = deadline(); !is_over && now() < end;) std::this_thread::sleep_for(1ms);
            EXPECT_TRUE(is_over);
        }
        settle(engine);
    });
}

TEST_P(EnginePromises, sending_runs_no_handlers_in_the_thread_that_sends) {
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

TEST_P(EnginePromises, requests_of_a_pair_are_handled_once_and_in_order) {
    run(4, [](Channel& channel) {
        const std::uint64_t count = 300 * scale;
        std::vector<std::uint64_t> next(channel.nodes());
        Handlers handlers;
        const auto take = handlers.add(
            "take", [&](Call& call, std::uint64_t number, Bytes) { EXPECT_EQ(number, next[call.source()]++); });
        Engine engine = open(channel, std::move(handlers));
        std::mt19937_64 random(seed() + engine.node());
        const std::vector<std::byte> payload(100'000);
        for (std::uint64_t i = 0; i < count; ++i)
            for (Node to = 0; to < engine.nodes(); ++to)
                good(
                    engine.send(to, take, i,
                                Bytes(payload).first(random() % 40 == 0 ? random() % payload.size() : random() % 100)));
        settle(engine);
        EXPECT_EQ(next, std::vector<std::uint64_t>(engine.nodes(), count));
        good(engine.barrier());
    });
}

TEST_P(EnginePromises, a_handler_may_send_further_requests) {
    run(4, [](Channel& channel) {
        const std::uint64_t hops = 60 * scale;
        std::uint64_t ended = 0, visits = 0;
        std::optional<Handler<std::uint64_t, Node>> hop;
        Handlers handlers;
        const auto end = handlers.add("end", [&](Call&) { ++ended; });
        hop = handlers.add("hop", [&](Call& call, std::uint64_t left, Node origin) {
            ++visits;
            Engine& engine = call.engine();
            const Node next = (engine.node() + 1) % engine.nodes();
            if (left == 0) good(engine.send(origin, end));
            else good(engine.send(next, *hop, left - 1, origin));
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier());
        constexpr std::uint64_t tokens = 20;
        for (std::uint64_t i = 0; i < tokens; ++i)
            good(engine.send(static_cast<Node>(i % 4), *hop, hops - 1, engine.node()));
        EXPECT_TRUE(engine.wait_until([&] { return ended == tokens; }, deadline()));
        good(engine.barrier());
        EXPECT_EQ(visits, tokens * hops); // all nodes are visited alike
        good(engine.barrier());
    });
}

// ---- the end

TEST_P(EnginePromises, what_waits_to_be_sent_goes_before_the_engine_ends) {
    run(2, [](Channel& channel) {
        constexpr int count = 300;
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, int number, Bytes) { EXPECT_EQ(number, handled++); });
        const auto begin = handlers.add("begin", [&](Call& call) {
            const std::vector<std::byte> payload(1000);
            for (int i = 0; i < count; ++i) good(call.engine().send(1, take, i, Bytes(payload))); // many find no room
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            good(engine.send(0, begin));
            good(engine.sync(deadline()));
            return;
        }
        EXPECT_TRUE(engine.wait_until([&] { return handled == count; }, deadline())) << handled;
    });
}

// ---- C++

TEST_P(EnginePromises, what_a_function_answers_or_throws_comes_to_the_future) {
    run(3, [](Channel& channel) {
        Handlers handlers;
        Node self = channel.self();
        const auto where = handlers.function("where", [self](int more) { return static_cast<int>(self) * 10 + more; });
        const auto fail = handlers.function("fail", [](int) -> int { throw std::runtime_error("not today"); });
        const auto fail_oddly = handlers.function("fail oddly", [](int) -> int { throw 5; });
        Engine engine = open(channel, std::move(handlers));
        auto all = engine.invoke_all(where, 3);
        EXPECT_EQ(all.size(), 3u);
        for (Node node = 0; node < 3; ++node)
            EXPECT_EQ(good(all[node].get(deadline())), static_cast<int>(node) * 10 + 3);
        for (Node node = 0; node < 3; ++node) {
            const std::string name = "node " + std::to_string(node);
            expect_code(engine.invoke(node, fail, 1).get(deadline()), ErrorCode::refused, {name, "fail", "not today"});
            expect_code(engine.invoke(node, fail_oddly, 1).get(deadline()), ErrorCode::refused, {name, "fail oddly"});
        }
        for (const Node nobody : {Node{3}, ~Node{0}})
            expect_code(engine.invoke(nobody, where, 1).get(deadline()), ErrorCode::not_found);
        good(engine.sync(deadline())); // it has nothing to tell: the futures have told it
        settle(engine);
    });
}

// ---- progress

TEST_P(EnginePromises, poll_handles_what_has_arrived_and_answers_how_much) {
    run(2, [](Channel& channel) {
        int handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        Engine engine = open(channel, std::move(handlers), {.in_background = false});
        good(engine.send(1 - engine.node(), take));
        engine.flush();
        std::size_t count = 0;
        for (const Instant end = deadline(); handled == 0 && now() < end;) count += engine.poll();
        EXPECT_EQ(handled, 1);
        EXPECT_GE(count, 1u);
        settle(engine);
    });
}

TEST_P(EnginePromises, wait_until_ends_when_it_is_done_or_at_its_deadline) {
    run(2, [](Channel& channel) {
        int handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        const Instant begin = now();
        EXPECT_FALSE(engine.wait_until([] { return false; }, begin + 20ms));
        EXPECT_GE(now() - begin, 20ms);
        EXPECT_LT(now() - begin, sanitized ? 5s : 1s);
        EXPECT_FALSE(engine.wait_until([] { return false; }, begin)) << "the deadline has passed";
        EXPECT_TRUE(engine.wait_until([] { return true; }, begin)) << "it is done all the same";
        good(engine.send(1 - engine.node(), take));
        EXPECT_TRUE(engine.wait_until([&] { return handled == 1; }, deadline()));
        settle(engine);
    });
}

KUMI_ENGINE_WORLDS(EnginePromises);

} // namespace
} // namespace kumi::engine_test
