// Requests and replies, in every world.

#include "engine/node.hpp"

#include <atomic>
#include <optional>
#include <stdexcept>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class ActiveMessages : public EngineTest {};

struct Point {
    double x;
    std::int64_t y;
};

TEST_P(ActiveMessages, a_handler_gets_what_was_sent_and_learns_who_sent_it) {
    run(3, [](Channel& channel) {
        std::array<int, 3> calls{};
        Handlers handlers;
        const auto take =
            handlers.add("take", [&](Call& call, std::int8_t a, std::uint64_t b, double c, bool d, Point e, Bytes f) {
                ++calls.at(call.source());
                EXPECT_EQ(a, -5);
                EXPECT_EQ(b, (std::uint64_t{1} << 60) + call.source());
                EXPECT_EQ(c, 0.25);
                EXPECT_TRUE(d);
                EXPECT_EQ(e.x, 1.5);
                EXPECT_EQ(e.y, -2);
                EXPECT_EQ(text_of(f), "a payload");
            });
        const auto nothing = handlers.add("nothing", [&](Call& call) { ++calls.at(call.source()); });
        Engine engine = open(channel, std::move(handlers));
        for (Node to = 0; to < engine.nodes(); ++to) {
            good(engine.send(to, take, std::int8_t{-5}, (std::uint64_t{1} << 60) + engine.node(), 0.25, true,
                             Point{1.5, -2}, bytes_of(std::string_view("a payload"))));
            good(engine.send(to, nothing));
        }
        settle(engine);
        EXPECT_EQ(calls, (std::array{2, 2, 2}));
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, a_payload_of_every_size_arrives_as_it_was_sent) {
    run(2, [](Channel& channel) {
        std::vector<std::size_t> sizes =
            interesting_sizes(std::min<std::size_t>(256 << 10, channel.traits().message_bytes_max - 256) - 8);
        std::size_t next = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, std::uint64_t number, Bytes payload) {
            ASSERT_EQ(number, next);
            EXPECT_EQ(payload.size(), sizes.at(next));
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(payload.data()) % 8, 0u);
            EXPECT_TRUE(is_pattern(payload, next)) << payload.size() << " bytes";
            ++next;
        });
        Engine engine = open(channel, std::move(handlers));
        for (std::size_t i = 0; i < sizes.size(); ++i)
            good(engine.send(1 - engine.node(), take, i, Bytes(pattern(sizes[i], i))));
        settle(engine);
        EXPECT_EQ(next, sizes.size());
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, requests_of_a_pair_are_handled_once_and_in_order) {
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

TEST_P(ActiveMessages, after_sync_requests_have_been_handled) {
    run(2, [](Channel& channel) {
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        Engine engine = open(channel, std::move(handlers));
        const auto seen = good(engine.memory().segment<int>(1));
        for (int i = 1; i <= 50; ++i) {
            good(engine.barrier());
            if (engine.node() == 0) {
                good(engine.send(1, take));
                good(engine.sync());
                good(engine.memory().write(seen.at(1), i));
                good(engine.sync());
            }
            good(engine.barrier());
            EXPECT_TRUE(engine.node() == 0 || handled == seen[0]);
        }
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, a_reply_comes_back_to_who_asked) {
    run(3, [](Channel& channel) {
        const std::uint64_t count = 100 * scale;
        std::uint64_t answers = 0, sum = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&, std::uint64_t value, Bytes payload) {
            EXPECT_TRUE(is_pattern(payload, value));
            sum += value, ++answers;
        });
        const auto square = handlers.add("square", [&](Call& call, std::uint64_t value) {
            EXPECT_FALSE(call.has_replied());
            call.reply(answer, value * value, Bytes(pattern(value % 3000, value * value)));
            EXPECT_TRUE(call.has_replied());
        });
        Engine engine = open(channel, std::move(handlers));
        std::uint64_t expected = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            good(engine.send(static_cast<Node>(i % 3), square, i));
            expected += i * i;
        }
        EXPECT_TRUE(engine.wait_until([&] { return answers == count; }, deadline()));
        EXPECT_EQ(sum, expected);
        settle(engine);
    });
}

/// Handlers that use the engine: it is there when the first request comes, since nobody sends before a barrier.
struct Self {
    Engine* engine = nullptr;
};

TEST_P(ActiveMessages, a_handler_may_send_further_requests) {
    run(4, [](Channel& channel) {
        const std::uint64_t hops = 200 * scale;
        std::uint64_t ended = 0, visits = 0;
        Self self;
        std::optional<Handler<std::uint64_t, Node>> hop;
        Handlers handlers;
        const auto end = handlers.add("end", [&](Call&) { ++ended; });
        hop = handlers.add("hop", [&](Call&, std::uint64_t left, Node origin) {
            ++visits;
            const Node next = (self.engine->node() + 1) % self.engine->nodes();
            if (left == 0) good(self.engine->send(origin, end));
            else good(self.engine->send(next, *hop, left - 1, origin));
        });
        Engine engine = open(channel, std::move(handlers));
        self.engine = &engine;
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

/// A tree of requests: each makes two more, anywhere.
TEST_P(ActiveMessages, handlers_that_send_more_than_they_get_do_not_deadlock) {
    run(3, [](Channel& channel) {
        constexpr std::uint32_t depth = 9;
        std::uint64_t leaves = 0;
        Self self;
        std::optional<Handler<std::uint32_t>> grow;
        Handlers handlers;
        const auto leaf = handlers.add("leaf", [&](Call&) { ++leaves; });
        grow = handlers.add("grow", [&](Call&, std::uint32_t level) {
            for (const Node step : {1u, 2u}) {
                const Node to = (self.engine->node() + step) % self.engine->nodes();
                if (level == 0) good(self.engine->send(0, leaf));
                else good(self.engine->send(to, *grow, level - 1));
            }
        });
        Engine engine = open(channel, std::move(handlers));
        self.engine = &engine;
        good(engine.barrier());
        good(engine.send(engine.node(), *grow, depth));
        if (engine.node() == 0) {
            const std::uint64_t all = engine.nodes() * (std::uint64_t{2} << depth);
            EXPECT_TRUE(engine.wait_until([&] { return leaves == all; }, deadline())) << leaves << " of " << all;
        }
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, storms_of_requests_and_replies_in_both_directions_do_not_deadlock) {
    run(3, [](Channel& channel) {
        const std::uint64_t count = 1'000 * scale;
        std::uint64_t answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&, Bytes) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call, Bytes payload) { call.reply(answer, payload); });
        Engine engine = open(channel, std::move(handlers));
        std::mt19937_64 random(seed() + engine.node());
        const std::vector<std::byte> payload(4000);
        for (std::uint64_t i = 0; i < count; ++i)
            good(engine.send(static_cast<Node>(random() % 3), ask,
                             Bytes(payload).first(random() % 10 == 0 ? random() % 4000 : random() % 50)));
        EXPECT_TRUE(engine.wait_until([&] { return answers == count; }, deadline())) << answers << " of " << count;
        settle(engine);
    });
}

TEST_P(ActiveMessages, many_threads_of_a_node_send_at_once_and_handlers_run_one_at_a_time) {
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

TEST_P(ActiveMessages, a_node_that_computes_still_answers) {
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

TEST_P(ActiveMessages, a_handler_that_throws_is_told_to_the_sender_and_harms_nobody) {
    run(2, [](Channel& channel) {
        int answers = 0;
        Handlers handlers;
        const auto fails = handlers.add(
            "table.find", [&](Call&, int key) { throw std::out_of_range("no key " + std::to_string(key)); });
        const auto fails_oddly = handlers.add("odd", [&](Call&) { throw 5; });
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call) { call.reply(answer); });
        Engine engine = open(channel, std::move(handlers));
        if (engine.node() == 0) {
            expect_error_by_sync(engine, engine.send(1, fails, 77), {"node 1", "table.find", "no key 77"});
            expect_error_by_sync(engine, engine.send(0, fails, 78), {"node 0", "table.find", "no key 78"});
            expect_error_by_sync(engine, engine.send(1, fails_oddly), {"node 1", "odd"});
            good(engine.send(1, ask));
            EXPECT_TRUE(engine.wait_until([&] { return answers == 1; }, deadline()));
        }
        good(engine.sync());
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, a_second_reply_and_a_reply_to_a_reply_are_told_to_the_sender) {
    run(2, [](Channel& channel) {
        int answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto twice = handlers.add("twice", [&](Call& call) { call.reply(answer), call.reply(answer); });
        const auto back = handlers.add("back", [&](Call& call) { call.reply(answer); });
        const auto forth = handlers.add("forth", [&](Call& call) { call.reply(back); });
        Engine engine = open(channel, std::move(handlers));
        if (engine.node() == 0) {
            expect_error_by_sync(engine, engine.send(1, twice), {"node 1", "twice"});
            EXPECT_TRUE(engine.wait_until([&] { return answers == 1; }, deadline()));
            good(engine.send(1, forth)); // node 1 is told: it sent what node 0 cannot answer
        } else {
            auto told = engine.sync(deadline());
            for (const Instant end = deadline(); told && now() < end; told = engine.sync(end))
                std::this_thread::sleep_for(1ms);
            expect_error(told, {"node 0", "back"});
        }
        good(engine.sync(deadline()));
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, what_cannot_be_sent_is_refused_by_name) {
    run(2, [](Channel& channel) {
        int handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, Bytes) { ++handled; });
        Engine engine = open(channel, std::move(handlers));
        const std::vector<std::byte> payload(engine.message_bytes_max() + 1);
        expect_error(engine.send(2, take, Bytes{}), {"node 2"});
        expect_error(engine.send(~Node{0}, take, Bytes{}), {"node"});
        expect_error(engine.send(1, take, Bytes(payload)), {"take", "node 1", "largest"});
        good(engine.send(1, take, Bytes(payload).first(engine.message_bytes_max())));
        settle(engine);
        EXPECT_EQ(handled, engine.node() == 1 ? 2 : 0);
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, waiting_inside_a_handler_is_refused) {
    run(2, [](Channel& channel) {
        int handled = 0;
        Flag never_set = 0;
        Self self;
        Handlers handlers;
        const auto misbehave = handlers.add("misbehave", [&](Call&) {
            expect_error(self.engine->memory().wait(never_set), {"handler"});
            expect_error(self.engine->memory().segment<int>(10), {"handler"});
            expect_error(self.engine->barrier(), {"handler"}); // it has arrived all the same, as the others do
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        self.engine = &engine;
        good(engine.barrier());
        good(engine.send(1 - engine.node(), misbehave));
        EXPECT_TRUE(engine.wait_until([&] { return handled == 1; }, deadline()));
        settle(engine);
    });
}

TEST_P(ActiveMessages, a_handler_may_put_and_reply_what_it_read) {
    run(3, [](Channel& channel) {
        int answers = 0;
        Self self;
        Segment<std::uint64_t> words;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call& call, std::uint64_t value) {
            EXPECT_EQ(value, call.source() * 10u);
            ++answers;
        });
        const auto ask = handlers.add("ask", [&](Call& call) {
            good(self.engine->memory().write(words.at(call.source(), 1 + self.engine->node()), words[0]));
            call.reply(answer, words[0]);
        });
        Engine engine = open(channel, std::move(handlers));
        self.engine = &engine;
        words = good(engine.memory().segment<std::uint64_t>(4));
        words[0] = engine.node() * 10u;
        good(engine.barrier());
        for (Node to = 0; to < 3; ++to) good(engine.send(to, ask));
        EXPECT_TRUE(engine.wait_until([&] { return answers == 3; }, deadline()));
        settle(engine);
        for (Node from = 0; from < 3; ++from) EXPECT_EQ(words[1 + from], from * 10u);
        good(engine.barrier());
    });
}

KUMI_ENGINE_WORLDS(ActiveMessages);

} // namespace
} // namespace kumi::engine_test
