// What coroutine.hpp promises. What has to do with other nodes runs in every world, the rest once.

#include "engine/node.hpp"

#include "kumi/coroutine.hpp"
#include "kumi/engine/call/invoke.hpp"

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace kumi::engine_test {
namespace {

Future<int> add_one(Future<int> future) {
    const auto value = co_await future;
    if (!value) co_return value.error();
    co_return *value + 1;
}

TEST(CoroutinePromise, it_runs_in_its_caller_until_the_first_future_that_is_not_ready) {
    bool has_begun = false, has_ended = false;
    Promise<int> promise;
    const auto wait = [&](Future<int> future) -> Future<void> {
        has_begun = true;
        const auto first = co_await ready(1);
        EXPECT_EQ(*first, 1);
        const auto second = co_await future;
        EXPECT_EQ(*second, 2);
        has_ended = true;
    };
    auto done = wait(promise.future());
    EXPECT_TRUE(has_begun);
    EXPECT_FALSE(has_ended);
    EXPECT_FALSE(done.is_ready());
    promise.complete(2);
    EXPECT_TRUE(has_ended);
    good(done.get());
}

TEST(CoroutinePromise, what_it_throws_becomes_the_error_of_its_future) {
    const auto fail = [](int how) -> Future<int> {
        if (how == 0) throw std::runtime_error("no way");
        if (how == 1) throw Error(ErrorCode::too_large, "mine");
        if (how == 2) throw 5;
        co_return how;
    };
    expect_error(fail(0).get(), {"no way"});
    expect_code(fail(1).get(), ErrorCode::too_large, {"mine"});
    expect_error(fail(2).get(), {});
    EXPECT_EQ(good(fail(3).get()), 3);
}

TEST(CoroutinePromise, an_error_that_it_returns_is_the_error_of_its_future) {
    expect_code(add_one(Future<int>::ready(Error(ErrorCode::not_found, "nothing"))).get(), ErrorCode::not_found);
    EXPECT_EQ(good(add_one(add_one(ready(1))).get()), 3);
}

TEST(CoroutinePromise, cancelling_its_future_cancels_what_it_awaits_and_it_goes_on_with_that_error) {
    Promise<int> promise;
    std::optional<ErrorCode> seen;
    const auto wait = [&](Future<int> future) -> Future<void> {
        const auto value = co_await future;
        if (!value) seen = value.error().code();
    };
    auto done = wait(promise.future());
    done.cancel();
    EXPECT_EQ(seen, ErrorCode::cancelled);
    EXPECT_TRUE(promise.is_ready());
    expect_code(done.get(), ErrorCode::cancelled);
}

TEST(CoroutinePromise, the_answer_comes_when_all_that_the_coroutine_held_is_destroyed) {
    const auto held = std::make_shared<int>(1);
    Promise<int> promise;
    const auto keep = [](std::shared_ptr<int> own, Future<int> future) -> Future<int> {
        const auto value = co_await future;
        co_return *own + *value;
    };
    auto sum = keep(held, promise.future());
    EXPECT_GT(held.use_count(), 1);
    long users = 0;
    auto after = sum.then([&](Result<int> value) { return users = held.use_count(), *value; });
    promise.complete(1);
    EXPECT_EQ(good(after.get()), 2);
    EXPECT_EQ(users, 1);
}

TEST(CoroutinePromise, what_follows_a_co_await_must_not_wait) {
    Promise<int> promise, other;
    auto unready = other.future();
    const auto wait = [&](Future<int> future) -> Future<int> {
        const auto value = co_await future;
        const auto refused = unready.get();
        if (!refused) co_return refused.error();
        co_return *value;
    };
    auto done = wait(promise.future());
    promise.complete(1);
    expect_code(done.get(), ErrorCode::misuse, {"co_await"});
}

TEST(CoroutinePromise, a_long_loop_of_co_awaits_takes_no_stack) {
    constexpr int rounds = 100'000;
    const auto loop = [&]() -> Future<int> {
        int sum = 0;
        for (int i = 0; i < rounds; ++i) {
            const auto value = co_await ready(1);
            sum += *value;
        }
        co_return sum;
    };
    EXPECT_EQ(good(loop().get()), rounds);
}

class CoroutinePromises : public EngineTest {};

Future<int> ask_all(Engine& engine, Function<int(int)> function) {
    int sum = 0;
    for (Node node = 0; node < engine.nodes(); ++node) {
        const auto answer = co_await engine.invoke(node, function, 5);
        if (!answer) co_return answer.error();
        sum += *answer;
    }
    co_return sum;
}

TEST_P(CoroutinePromises, a_coroutine_asks_one_node_after_the_other) {
    run(3, [](Channel& channel) {
        Handlers handlers;
        const int self = static_cast<int>(channel.self());
        const auto add = handlers.function("add", [self](int value) { return value + self; });
        Engine engine = open(channel, std::move(handlers));
        EXPECT_EQ(good(ask_all(engine, add).get(deadline())), 18);
        settle(engine);
    });
}

TEST_P(CoroutinePromises, a_function_may_be_a_coroutine) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        Promise<int> later;
        const auto twice = handlers.function("twice", [&](std::string text) -> Future<std::string> {
            const auto count = co_await later.future(); // its parameters are its own: they stay while it waits
            if (!count) co_return count.error();
            std::string all;
            for (int i = 0; i < *count; ++i) all += text;
            co_return all;
        });
        Engine engine = open(channel, std::move(handlers));
        const std::string word = "a word that is too long to be kept inside of a string itself;";
        auto answer = engine.invoke(1 - engine.node(), twice, word);
        good(engine.barrier(deadline()));
        later.complete(2);
        EXPECT_EQ(good(answer.get(deadline())), word + word);
        settle(engine);
    });
}

TEST_P(CoroutinePromises, the_end_of_the_job_ends_what_a_coroutine_waits_for) {
    run(2, [](Channel& channel) {
        std::mutex mutex;
        std::list<Promise<int>> never_kept; // one for each call
        std::optional<Future<int>> sum;
        {
            Handlers handlers;
            const auto wait = handlers.function("wait", [&](int) {
                const std::lock_guard lock(mutex);
                return never_kept.emplace_back().future();
            });
            Engine engine = open(channel, std::move(handlers));
            good(engine.barrier(deadline()));
            sum = ask_all(engine, wait);
            good(engine.barrier(deadline()));
        }
        const auto ended = sum->get();
        EXPECT_FALSE(ended);
        if (!ended) {
            EXPECT_TRUE(ended.error().code() == ErrorCode::ended || ended.error().code() == ErrorCode::node_lost)
                << ended.error().text();
        }
    });
}

KUMI_ENGINE_WORLDS(CoroutinePromises);

} // namespace
} // namespace kumi::engine_test
