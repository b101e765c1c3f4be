// Programs whose handlers take a mutex that threads hold while they call the engine, in every world.

#include "engine/node.hpp"
#include "kumi/engine/call/invoke.hpp"

#include <atomic>
#include <mutex>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class Mutexes : public EngineTest {};

/// What a program counts under its mutex, in handlers and wherever else the engine calls it.
struct Guarded {
    std::mutex mutex;
    std::atomic<long> count{0}; // so that a condition may look without the mutex

    void add() {
        const std::lock_guard lock(mutex);
        ++count;
    }
};

/// Each node's program locks a mutex in its handler and around its calls, while the other node does the same.
TEST_P(Mutexes, a_mutex_that_a_handler_takes_may_be_held_while_requests_are_sent) {
    run(2, [](Channel& channel) {
        const long count = 300 * scale;
        Guarded handled;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, Bytes) { handled.add(); });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        const std::vector<std::byte> payload(3000);
        for (long i = 0; i < count; ++i) {
            const std::lock_guard lock(handled.mutex);
            good(engine.send(other, take, Bytes(payload)));
        }
        settle(engine);
        EXPECT_EQ(handled.count, count);
        good(engine.barrier());
    });
}

TEST_P(Mutexes, a_mutex_that_on_message_takes_may_be_held_while_messages_are_sent) {
    run(2, [](Channel& channel) {
        const long count = 300 * scale;
        Guarded taken;
        Engine engine = open(channel);
        engine.dispatcher().messages().set_plain_handler([&](pm::Message&) { taken.add(); });
        const std::vector<std::byte> bytes(3000);
        for (long i = 0; i < count; ++i) {
            const std::lock_guard lock(taken.mutex);
            good(engine.dispatcher().messages().send_plain(1 - engine.node(), std::array{Bytes(bytes)}));
        }
        EXPECT_TRUE(engine.wait_until([&] { return taken.count == count; }, deadline()));
        good(engine.barrier());
    });
}

TEST_P(Mutexes, a_mutex_that_a_handler_takes_may_be_held_while_memory_is_written_and_functions_are_invoked) {
    run(2, [](Channel& channel) {
        const long count = 100 * scale;
        Guarded handled;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { handled.add(); });
        const auto twice = handlers.function("twice", [](long value) { return 2 * value; });
        Engine engine = open(channel, std::move(handlers));
        const auto words = good(engine.memory().segment<long>(static_cast<std::size_t>(count)));
        const Node other = 1 - engine.node();
        std::vector<Future<long>> answers;
        for (long i = 0; i < count; ++i) {
            good(engine.send(other, take));
            const std::lock_guard lock(handled.mutex);
            const long value = i + other;
            good(engine.memory().put(words.at(other, static_cast<std::size_t>(i)), std::vector{value}));
            answers.push_back(engine.invoke(other, twice, value));
        }
        for (long i = 0; i < count; ++i)
            EXPECT_EQ(good(answers[static_cast<std::size_t>(i)].get(deadline())), 2 * (i + other));
        settle(engine);
        EXPECT_EQ(handled.count, count);
        for (long i = 0; i < count; ++i) EXPECT_EQ(words[static_cast<std::size_t>(i)], i + engine.node());
        good(engine.barrier());
    });
}

TEST_P(Mutexes, the_condition_of_a_wait_may_take_a_mutex_that_another_thread_holds_while_it_sends) {
    run(2, [](Channel& channel) {
        const long count = 300 * scale;
        std::mutex mutex;
        std::atomic<long> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        Engine engine = open(channel, std::move(handlers));
        std::thread sender([&] {
            for (long i = 0; i < count; ++i) {
                const std::lock_guard lock(mutex);
                EXPECT_TRUE(engine.send(1 - engine.node(), take));
            }
        });
        EXPECT_TRUE(engine.wait_until(
            [&] {
                const std::lock_guard lock(mutex);
                return handled == count;
            },
            deadline()));
        sender.join();
        settle(engine);
        good(engine.barrier());
    });
}

TEST_P(Mutexes, a_continuation_may_take_a_mutex_that_another_thread_holds_while_it_invokes) {
    run(2, [](Channel& channel) {
        const long count = 100 * scale;
        Guarded answered;
        Handlers handlers;
        const auto same = handlers.function("same", [](long value) { return value; });
        Engine engine = open(channel, std::move(handlers));
        for (long i = 0; i < count; ++i) {
            Future<long> answer;
            {
                const std::lock_guard lock(answered.mutex);
                answer = engine.invoke(1 - engine.node(), same, long{i});
            }
            // Without the mutex: what is ready already is continued by this thread.
            (void)answer.then([&](Result<long>) { answered.add(); });
        }
        EXPECT_TRUE(engine.wait_until([&] { return answered.count == count; }, deadline()));
        good(engine.barrier());
    });
}

KUMI_ENGINE_WORLDS(Mutexes);

} // namespace
} // namespace kumi::engine_test
