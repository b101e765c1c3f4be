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
