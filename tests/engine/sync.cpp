// What sync() waits for, and which thread gets which error.

#include "engine/node.hpp"

#include <atomic>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class Sync : public EngineTest {};

TEST_P(Sync, ends_while_handlers_pass_tokens_on) {
    run(3, [](Channel& channel) {
        Engine* self = nullptr;
        std::atomic<bool> is_over{false};
        std::atomic<std::uint64_t> passed{0};
        Handlers handlers;
        std::optional<Handler<>> pass;
        pass = handlers.add("pass", [&](Call&) {
            ++passed;
            if (!is_over) (void)self->send((self->node() + 1) % self->nodes(), *pass);
        });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        good(engine.barrier(deadline()));
        for (int i = 0; i < 10; ++i) good(engine.send((engine.node() + 1) % 3, *pass));
        for (int i = 0; i < 20; ++i) good(engine.sync(deadline()));
        Flag flag = 0;
        good(engine.start_sync(flag));
        good(engine.memory().wait(flag, 1, deadline()));
        good(engine.barrier(deadline()));
        is_over = true;
        EXPECT_GT(passed.load(), 0u);
        settle(engine);
        settle(engine);
    });
}

TEST_P(Sync, waits_for_large_puts_that_were_begun_before) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const auto memory = good(engine.memory().segment<std::byte>(3'000'000));
        const auto content = pattern(memory.size(), 1 + engine.node());
        const Node other = 1 - engine.node();
        for (int i = 0; i < 3; ++i) {
            good(engine.memory().start_put(memory.at(other), content));
            good(engine.sync(deadline()));
            std::byte last{};
            good(engine.memory().get(memory.at(other, memory.size() - 1), {&last, 1}));
            EXPECT_EQ(last, content.back());
        }
        good(engine.barrier(deadline()));
        EXPECT_TRUE(is_pattern(memory.local(), 1 + other));
        good(engine.barrier(deadline()));
    });
}

TEST_P(Sync, returns_the_errors_of_the_thread_that_calls_it) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto refuse = handlers.add("refuse", [](Call&, int number) {
            throw std::runtime_error("number " + std::to_string(number));
        });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        good(engine.barrier(deadline()));
        std::atomic<int> step{0};
        std::thread second([&] {
            EXPECT_TRUE(engine.send(other, refuse, 2));
            step = 1;
            EXPECT_TRUE(engine.wait_until([&] { return step == 2; }, deadline()));
            const auto told = engine.sync(deadline());
            expect_error(told, {"number 2"});
            EXPECT_EQ(told.error().code(), ErrorCode::refused);
            EXPECT_TRUE(engine.sync(deadline())) << "told once";
        });
        EXPECT_TRUE(engine.wait_until([&] { return step == 1; }, deadline()));
        good(engine.sync(deadline())); // it has sent nothing that failed
        Flag flag = 0;
        EXPECT_EQ(engine.memory().wait(flag, 1, now() + 5ms).error().code(), ErrorCode::timed_out)
            << "a thread that waits for a flag is told of its own errors only";
        good(engine.send(other, refuse, 1));
        expect_error(engine.sync(deadline()), {"number 1"});
        step = 2;
        second.join();
        good(engine.barrier(deadline()));
    });
}

KUMI_ENGINE_WORLDS(Sync);

} // namespace
} // namespace kumi::engine_test
