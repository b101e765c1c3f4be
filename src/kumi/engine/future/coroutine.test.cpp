#include "kumi/engine/future/coroutine.hpp"

#include "kumi/engine/future/when.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>

namespace kumi::engine::coroutine_test {
namespace {

using namespace std::chrono_literals;

Future<int> sum(Future<int> first, Future<int> second) {
    const auto a = co_await first;
    if (!a) co_return a.error();
    const auto b = co_await std::move(second);
    if (!b) co_return b.error();
    co_return *a + *b;
}

TEST(Coroutine, waits_for_futures_and_answers) {
    Promise<int> first, second;
    Future<int> both = sum(first.future(), second.future());
    second.complete(2);
    EXPECT_FALSE(both.is_ready());
    first.complete(1);
    EXPECT_EQ(*both.get(), 3);
    EXPECT_EQ(*sum(ready(3), ready(4)).get(), 7);
}

TEST(Coroutine, gets_the_error_of_a_future_and_may_answer_with_it) {
    EXPECT_EQ(sum(ready(1), Future<int>::ready(Error(ErrorCode::too_large, "no room"))).get().error().code(),
              ErrorCode::too_large);
    EXPECT_EQ(sum(Future<int>(), ready(1)).get().error().code(), ErrorCode::misuse);
}

Future<void> note(Future<int> future, int& noted, std::shared_ptr<int> held) {
    const auto answer = co_await future;
    if (!answer) throw answer.error();
    noted = *answer + *held;
}

TEST(Coroutine, may_answer_nothing_and_throw_an_error) {
    Promise<int> promise;
    int noted = 0;
    const auto held = std::make_shared<int>(10);
    Future<void> done = note(promise.future(), noted, held);
    EXPECT_EQ(held.use_count(), 2);
    promise.complete(5);
    EXPECT_TRUE(done.get());
    EXPECT_EQ(noted, 15);
    EXPECT_EQ(held.use_count(), 1) << "what it held is destroyed";
    EXPECT_EQ(note(Future<int>::ready(Error(ErrorCode::node_lost, "gone")), noted, held).get().error().code(),
              ErrorCode::node_lost);
}

Future<int> thrower(Future<int> future, bool is_exception) {
    const auto awaited = co_await future;
    if (!awaited) co_return awaited.error();
    if (is_exception) throw std::runtime_error("no luck");
    throw 5;
}

TEST(Coroutine, what_it_throws_is_the_error_of_its_future) {
    EXPECT_EQ(thrower(ready(1), true).get().error().text(), "a coroutine threw: no luck");
    Promise<int> promise;
    Future<int> later = thrower(promise.future(), false);
    promise.complete(1);
    EXPECT_EQ(later.get().error().text(), "a coroutine threw something that is no std::exception");
    EXPECT_EQ(later.get().error().code(), ErrorCode::misuse) << "taken once";
}

/// Sets its flag when it is destroyed.
struct Mark {
    bool& is_destroyed;
    explicit Mark(bool& flag) : is_destroyed(flag) {}
    ~Mark() { is_destroyed = true; }
};

Future<int> holds(Future<int> future, bool& is_destroyed) {
    const Mark mark(is_destroyed);
    co_return *co_await future;
}

TEST(Coroutine, answers_when_all_that_it_held_is_destroyed) {
    Promise<int> promise;
    bool is_destroyed = false, was_destroyed = false;
    Future<void> last =
        holds(promise.future(), is_destroyed).then([&](Result<int>) { was_destroyed = is_destroyed; });
    promise.complete(1);
    EXPECT_TRUE(last.get());
    EXPECT_TRUE(was_destroyed);
}

Future<std::string> waits_inside(Future<int> future, Future<int> other) {
    const auto awaited = co_await future;
    if (!awaited) co_return awaited.error();
    co_return other.get(now() + 10s).error().text();
}

TEST(Coroutine, must_not_wait_after_it_was_suspended) {
    Promise<int> promise, never_comes;
    Future<std::string> text = waits_inside(promise.future(), never_comes.future());
    promise.complete(1);
    EXPECT_EQ(*text.get(), "a continuation must not wait for an answer: return the future, or co_await it");
}

TEST(Coroutine, cancelling_it_cancels_what_it_awaits_and_will_await) {
    Promise<int> first, second;
    Future<int> both = sum(first.future(), second.future());
    both.cancel();
    EXPECT_TRUE(first.is_ready());
    EXPECT_EQ(both.get().error().code(), ErrorCode::cancelled);
    Promise<int> third, fourth;
    int failures = 0;
    Future<void> stubborn = [](Future<int> a, Future<int> b, int& failed) -> Future<void> {
        if (!co_await a) ++failed;
        if (!co_await b) ++failed;
    }(third.future(), fourth.future(), failures);
    stubborn.cancel();
    EXPECT_TRUE(third.is_ready());
    EXPECT_TRUE(fourth.is_ready()) << "it goes on, and nobody wants what it awaits next";
    EXPECT_EQ(failures, 2);
}

#if defined(KUMI_ADDRESS_SANITIZER) || defined(KUMI_THREAD_SANITIZER)
constexpr int long_loop = 30'000; // a sanitizer takes more stack, and more time
#else
constexpr int long_loop = 200'000;
#endif

Future<int> count_down(int left) {
    int sum_of_all = 0;
    for (; left > 0; --left) sum_of_all += *co_await ready(1);
    co_return sum_of_all;
}

TEST(Coroutine, a_long_loop_takes_no_stack) {
    EXPECT_EQ(*count_down(long_loop).get(), long_loop);
    // The same where every round is suspended, and goes on by a continuation.
    Promise<int> start;
    Future<int> all = [](Future<int> first) -> Future<int> {
        int rounds = *co_await first;
        for (int i = 0; i < long_loop; ++i) {
            Promise<int> promise;
            Future<int> next = promise.future().then([](Result<int> answer) { return answer; });
            promise.complete(1); // inside a continuation: `next` is ready after it
            rounds += *co_await next;
        }
        co_return rounds;
    }(start.future());
    start.complete(0);
    EXPECT_EQ(*all.get(), long_loop);
}

TEST(Coroutine, goes_on_where_its_future_is_completed) {
    Promise<int> promise;
    Future<bool> is_there = [](Future<int> future, std::thread::id caller) -> Future<bool> {
        const auto awaited = co_await future;
        if (!awaited) co_return awaited.error();
        co_return std::this_thread::get_id() != caller;
    }(promise.future(), std::this_thread::get_id());
    std::thread completer([&] { promise.complete(1); });
    EXPECT_TRUE(*is_there.get());
    completer.join();
}

TEST(Coroutine, awaits_several_at_once) {
    Promise<int> first;
    Future<int> all = [](Future<int> a) -> Future<int> {
        const auto both = co_await when_all(std::move(a), ready(std::string("xyz")));
        co_return *std::get<0>(*both) + static_cast<int>(std::get<1>(*both)->size());
    }(first.future());
    first.complete(4);
    EXPECT_EQ(*all.get(), 7);
}

} // namespace
} // namespace kumi::engine::coroutine_test
