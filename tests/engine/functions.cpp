// Functions that other nodes call.

#include "engine/node.hpp"
#include "kumi/engine/call/invoke.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>

namespace kumi::engine_test {
namespace {

class Functions : public EngineTest {};

TEST_P(Functions, calls_that_come_together_are_all_answered) {
    run(3, [](Channel& channel) {
        Handlers handlers;
        const auto square = handlers.function("square", [](long value) { return value * value; });
        const auto refuse = handlers.function("refuse", [](long) -> long { throw std::runtime_error("not today"); });
        Engine engine = open(channel, std::move(handlers));
        std::vector<Future<long>> answers;
        for (long i = 0; i < 50; ++i)
            for (Node to = 0; to < 3; ++to) answers.push_back(engine.invoke(to, square, i));
        for (std::size_t i = 0; i < answers.size(); ++i)
            EXPECT_EQ(good(answers[i].get(deadline())), static_cast<long>(i / 3 * (i / 3)));
        expect_error(engine.invoke((engine.node() + 1) % 3, refuse, 1).get(deadline()), {"not today", "refuse"});
        good(engine.barrier(deadline()));
    });
}

TEST_P(Functions, who_syncs_right_after_a_call_gets_on) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto wait_a_little =
            handlers.function("wait", [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
        Engine engine = open(channel, std::move(handlers));
        for (int i = 0; i < 10; ++i) {
            auto answer = engine.invoke(1 - engine.node(), wait_a_little, i);
            good(engine.sync(deadline()));
            EXPECT_TRUE(answer.is_ready());
        }
        good(engine.barrier(deadline()));
    });
}

TEST_P(Functions, a_function_may_call_others_and_wait) {
    run(2, [](Channel& channel) {
        Engine* self = nullptr;
        Handlers handlers;
        std::optional<Function<int(int)>> count;
        count = handlers.function("count", [&](int left) -> int {
            return left == 0 ? 0 : 1 + must(self->invoke(1 - self->node(), *count, left - 1).get());
        });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        good(engine.barrier(deadline()));
        EXPECT_EQ(good(engine.invoke(1 - engine.node(), *count, 8).get(deadline())), 8);
        good(engine.barrier(deadline()));
    });
}

using namespace std::chrono_literals;

/// Whether functions have threads of their own: not in a world without a background.
TEST_P(Functions, one_that_computes_for_long_stops_neither_messages_nor_deadlines) {
    run(2, [](Channel& channel) {
        std::atomic<bool> has_begun{false};
        int pongs = 0;
        Handlers handlers;
        const auto pong = handlers.add("pong", [&](Call&) { ++pongs; });
        const auto ping = handlers.add("ping", [&](Call& call) { call.reply(pong); });
        const auto compute = handlers.function("compute", [&] {
            has_begun = true;
            std::this_thread::sleep_for(400ms);
            return 5;
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        auto answer = engine.invoke(1 - engine.node(), compute);
        while (!has_begun) engine.poll();
        const Instant start = now();
        EXPECT_FALSE(engine.wait_until([] { return false; }, start + 50ms));
        EXPECT_LT(now() - start, 250ms) << "the deadline holds while a function runs here";
        good(engine.send(1 - engine.node(), ping));
        EXPECT_TRUE(engine.wait_until([&] { return pongs == 1; }, deadline()));
        EXPECT_FALSE(answer.is_ready()) << "the other node answers messages while its function computes";
        EXPECT_EQ(good(answer.get(deadline())), 5);
        good(engine.barrier(deadline()));
    });
}

TEST_P(Functions, may_be_nested_deeply_and_wait_for_those_that_come_later) {
    run(2, [](Channel& channel) {
        Engine* self = nullptr;
        std::atomic<int> opened{0};
        Handlers handlers;
        std::optional<Function<int(int)>> count;
        count = handlers.function("count", [&](int left) -> int {
            return left == 0 ? 0 : 1 + must(self->invoke(1 - self->node(), *count, left - 1).get());
        });
        // Each waits until all that came after it have run.
        const auto open_in_turn = handlers.function("open", [&](int number) {
            if (!self->wait_until([&] { return opened == number; }, deadline())) return false;
            ++opened;
            return true;
        });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        good(engine.barrier(deadline()));
        EXPECT_EQ(good(engine.invoke(1 - engine.node(), *count, 100).get(deadline())), 100);
        std::vector<Future<bool>> answers;
        for (int number = 39; number >= 0; --number)
            answers.push_back(engine.invoke(1 - engine.node(), open_in_turn, number));
        for (auto& answer : answers) EXPECT_TRUE(good(answer.get(deadline())));
        good(engine.barrier(deadline()));
    });
}

TEST_P(Functions, may_return_a_future_or_an_error) {
    run(2, [](Channel& channel) {
        Engine* self = nullptr;
        Handlers handlers;
        const auto twice = handlers.function("twice", [](int value) { return 2 * value; });
        const auto relay =
            handlers.function("relay", [&](int value) { return self->invoke(self->node(), twice, value); });
        const auto nothing = handlers.function("nothing", [&](int value) {
            return self->invoke(self->node(), twice, value).then([](const Result<int>& result) { (void)result; });
        });
        const auto half = handlers.function("half", [](int value) -> Result<int> {
            if (value % 2 != 0) return error(ErrorCode::too_large, "{} is odd", value);
            return value / 2;
        });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        good(engine.barrier(deadline()));
        const Node other = 1 - engine.node();
        std::vector<Future<int>> answers;
        for (int i = 0; i < 100; ++i) answers.push_back(engine.invoke(other, relay, i));
        for (int i = 0; i < 100; ++i) EXPECT_EQ(good(answers[static_cast<std::size_t>(i)].get(deadline())), 2 * i);
        good(engine.invoke(other, nothing, 4).get(deadline()));
        EXPECT_EQ(good(engine.invoke(other, half, 8).get(deadline())), 4);
        const auto odd = engine.invoke(other, half, 7).get(deadline());
        expect_error(odd, {"7 is odd", "node"});
        EXPECT_EQ(odd.error().code(), ErrorCode::too_large) << "the code travels";
        good(engine.barrier(deadline()));
    });
}

TEST_P(Functions, take_and_answer_much_more_than_a_message_holds) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto reversed = handlers.function("reversed", [](std::vector<std::uint32_t> values) {
            std::ranges::reverse(values);
            return values;
        });
        const auto size_of = handlers.function("size", [](const std::string& text) { return text.size(); });
        const auto text_of = handlers.function("text", [](std::size_t size) { return std::string(size, 'x'); });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        for (const std::size_t bytes : {engine.message_bytes_max() / 2 - 8, engine.message_bytes_max() / 2 - 7,
                                        engine.message_bytes_max(), std::size_t{1'000'000}}) {
            EXPECT_EQ(good(engine.invoke(other, size_of, std::string(bytes, 'y')).get(deadline())), bytes);
            EXPECT_EQ(good(engine.invoke(other, text_of, bytes).get(deadline())), std::string(bytes, 'x'));
        }
        std::vector<std::uint32_t> values(300'000);
        std::vector<Future<std::vector<std::uint32_t>>> answers;
        for (std::uint32_t i = 0; i < 5; ++i) { // parts of several are under way
            for (std::size_t at = 0; at < values.size(); ++at) values[at] = static_cast<std::uint32_t>(at) * (i + 1);
            answers.push_back(engine.invoke(other, reversed, values));
        }
        for (std::uint32_t i = 0; i < 5; ++i) {
            const auto answer = good(answers[i].get(deadline()));
            ASSERT_EQ(answer.size(), values.size());
            for (std::size_t at = 0; at < values.size(); at += 999)
                EXPECT_EQ(answer[values.size() - 1 - at], static_cast<std::uint32_t>(at) * (i + 1));
        }
        good(engine.barrier(deadline()));
    });
}

TEST_P(Functions, may_sync_though_the_call_that_they_answer_is_under_way) {
    run(2, [](Channel& channel) {
        Engine* self = nullptr;
        Segment<std::uint64_t> words;
        Handlers handlers;
        const auto store = handlers.function("store", [&](std::uint64_t value) {
            must(self->memory().put(words.at(1 - self->node()), {&value, 1}));
            return self->sync(deadline()).has_value();
        });
        const auto back = handlers.function("back", [&](std::uint64_t value) { // called by a node that waits for this
            return must(self->invoke(1 - self->node(), store, value).get(deadline()));
        });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        words = good(engine.memory().segment<std::uint64_t>(1));
        good(engine.barrier(deadline()));
        EXPECT_TRUE(good(engine.invoke(engine.node(), store, std::uint64_t{1}).get(deadline()))) << "on this node";
        EXPECT_TRUE(good(engine.invoke(1 - engine.node(), back, std::uint64_t{2}).get(deadline())));
        good(engine.barrier(deadline()));
    });
}

TEST_P(Functions, that_wait_for_ever_end_with_the_engine) {
    run(2, [](Channel& channel) {
        Engine* self = nullptr;
        std::atomic<bool> waits{false}, was_done{true};
        Handlers handlers;
        const auto wait = handlers.function("wait", [&] {
            waits = true;
            was_done = self->wait_until([] { return false; });
        });
        {
            Engine engine = open(channel, std::move(handlers));
            self = &engine;
            auto answer = engine.invoke(engine.node(), wait);
            EXPECT_TRUE(engine.wait_until([&] { return waits.load(); }, deadline()));
            good(engine.barrier(deadline()));
        }
        EXPECT_FALSE(was_done);
    });
}

KUMI_ENGINE_WORLDS(Functions);

} // namespace
} // namespace kumi::engine_test
