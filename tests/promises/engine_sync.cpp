// What engine/engine.hpp promises of sync() and start_sync(): each test is one promise, in every world.

#include "engine/node.hpp"

#include "kumi/engine/call/invoke.hpp"

#include <atomic>
#include <optional>
#include <stdexcept>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class SyncPromises : public EngineTest {};

TEST_P(SyncPromises, a_sync_that_timed_out_may_be_called_again) {
    run(2, [](Channel& channel) {
        std::atomic<bool> has_ended{false};
        Handlers handlers;
        const auto slow = handlers.add("slow", [&](Call&) {
            std::this_thread::sleep_for(60ms);
            has_ended = true;
        });
        const auto ask = handlers.function("ask", [&] { return has_ended.load(); });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            good(engine.send(1, slow));
            const Instant begin = now();
            for (const Instant end : {begin - 1s, begin + 5ms, begin + 10ms}) {
                const auto late = engine.sync(end);
                if (now() < begin + 60ms) expect_code(late, ErrorCode::timed_out, {"sync", "node 1"});
            }
            good(engine.sync(deadline()));
            EXPECT_TRUE(good(engine.invoke(1, ask).get(deadline())));
        }
        settle(engine);
    });
}

TEST_P(SyncPromises, sync_waits_for_requests_of_other_threads_too) {
    run(2, [](Channel& channel) {
        Segment<std::uint64_t> words;
        Handlers handlers;
        const auto slow = handlers.add("slow", [&](Call&) {
            std::this_thread::sleep_for(20ms);
            words[0] = 1;
        });
        Engine engine = open(channel, std::move(handlers));
        words = good(engine.memory().segment<std::uint64_t>(1));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            std::thread([&] { EXPECT_TRUE(engine.send(1, slow)); }).join();
            good(engine.sync(deadline()));
            EXPECT_EQ(good(engine.memory().read(words.at(1))), 1u);
        }
        settle(engine);
    });
}

TEST_P(SyncPromises, after_sync_requests_have_been_handled) {
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

TEST_P(SyncPromises, ends_while_handlers_pass_tokens_on) {
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

TEST_P(SyncPromises, waits_for_large_puts_that_were_begun_before) {
    run_engines(2, [](Engine& engine) {
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
    });
}

TEST_P(SyncPromises, returns_the_errors_of_the_thread_that_calls_it) {
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

TEST_P(SyncPromises, start_sync_sets_its_flag_when_all_that_was_begun_is_done) {
    run_engines(3, [](Engine& engine) {
        const auto memory = good(engine.memory().segment<std::byte>(300'000 * 3));
        const auto content = pattern(300'000, engine.node());
        std::array<Flag, 3> done{};
        for (std::size_t i = 0; i < 3; ++i) {
            const Node to = static_cast<Node>(engine.node() + i) % 3;
            good(engine.memory().start_put(memory.at(to, engine.node() * content.size()), content));
            good(engine.start_sync(done[i]));
        }
        good(engine.memory().wait(done[2], 1, deadline()));
        for (const Flag& flag : done) EXPECT_EQ(load_flag(flag), 1u) << "they come in order";
        for (Node to = 0; to < 3; ++to) {
            std::vector<std::byte> got(content.size());
            good(engine.memory().get(memory.at(to, engine.node() * content.size()), got));
            EXPECT_EQ(got, content);
        }
        Flag at_once = 0;
        good(engine.start_sync(at_once)); // nothing is under way
        good(engine.memory().wait(at_once, 1, deadline()));
    });
}

KUMI_ENGINE_WORLDS(SyncPromises);

} // namespace
} // namespace kumi::engine_test
