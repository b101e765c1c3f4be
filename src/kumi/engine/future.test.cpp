#include "kumi/engine/future.hpp"

#include "kumi/engine/progress/progress.hpp"

#include <condition_variable>
#include <gtest/gtest.h>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace kumi::engine {
namespace {

using namespace std::chrono_literals;

/// Whoever waits runs what arrives, as handlers.
class FakeProgress final : public Progress {
public:
    bool wait_until(base::FunctionRef<bool()> done, Instant deadline, const char* = "") override {
        std::unique_lock lock(mutex_);
        while (!done()) {
            if (!arrived_.empty()) {
                const auto handler = std::move(arrived_.front());
                arrived_.pop();
                handler_thread_ = std::this_thread::get_id();
                lock.unlock();
                handler();
                lock.lock();
                handler_thread_ = std::thread::id();
                changed_.notify_all();
            } else if (deadline == never) {
                changed_.wait(lock);
            } else if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
                return done();
            }
        }
        return true;
    }
    void wake() noexcept override {
        const std::lock_guard lock(mutex_);
        ++wakes;
        changed_.notify_all();
    }
    bool in_handler() const noexcept override {
        const std::lock_guard lock(mutex_);
        return handler_thread_ == std::this_thread::get_id();
    }
    bool forget(std::uint64_t asked) override {
        forgotten.push_back(asked);
        if (on_forget) on_forget();
        return true;
    }

    void arrives(std::function<void()> handler) {
        const std::lock_guard lock(mutex_);
        arrived_.push(std::move(handler));
        changed_.notify_all();
    }

    std::vector<std::uint64_t> forgotten;
    std::function<void()> on_forget;
    int wakes = 0;

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::queue<std::function<void()>> arrived_;
    std::thread::id handler_thread_;
};

class FutureTest : public testing::Test {
protected:
    FakeProgress progress;
    Promise<int> promise{&progress};
    Future<int> future = promise.future();

    void answer_arrives(int value) {
        progress.arrives([this, value] { promise.complete(value); });
    }
};

TEST_F(FutureTest, gives_the_answer_once) {
    EXPECT_FALSE(future.is_ready());
    promise.complete(5);
    EXPECT_TRUE(future.is_ready());
    EXPECT_EQ(*future.get(), 5);
    EXPECT_EQ(future.get().error().text(), "the answer was taken before: a future gives it once");
}

TEST_F(FutureTest, waits_for_what_a_handler_brings) {
    answer_arrives(7);
    EXPECT_FALSE(future.is_ready());
    EXPECT_EQ(*future.get(), 7);
}

TEST_F(FutureTest, passes_an_error_on_untouched) {
    promise.complete(error("node 3 (host c): bad luck"));
    EXPECT_EQ(future.get().error().text(), "node 3 (host c): bad luck");
}

TEST_F(FutureTest, can_be_used_after_a_deadline_has_passed) {
    EXPECT_EQ(future.get(now() + 1ms).error().text(), "there is no answer yet, and the deadline has passed");
    EXPECT_FALSE(future.is_ready());
    answer_arrives(7);
    EXPECT_EQ(*future.get(now() + 10s), 7);
}

TEST_F(FutureTest, a_handler_may_take_an_answer_but_not_wait_for_it) {
    std::string refused;
    int taken = 0;
    progress.arrives([&] { refused = future.get().error().text(); });
    answer_arrives(7);
    progress.arrives([&] { taken = *future.get(); });
    EXPECT_TRUE(progress.wait_until([&] { return taken != 0; }, now() + 10s));
    EXPECT_EQ(refused, "a handler must not wait for an answer: give then() what is to be done with it");
    EXPECT_EQ(taken, 7);
}

TEST_F(FutureTest, the_first_to_complete_it_counts) {
    EXPECT_TRUE(promise.complete(1));
    EXPECT_FALSE(promise.complete(2));
    future.cancel();
    EXPECT_EQ(*future.get(), 1);
    EXPECT_TRUE(progress.forgotten.empty());
}

TEST_F(FutureTest, cancel_says_so_and_the_answer_is_forgotten) {
    promise.set_asked(42);
    future.cancel();
    EXPECT_TRUE(future.is_ready());
    EXPECT_EQ(progress.forgotten, std::vector<std::uint64_t>{42});
    EXPECT_FALSE(promise.complete(1));
    EXPECT_EQ(future.get().error().text(), "cancelled: the answer was not wanted any more");
}

TEST_F(FutureTest, cancel_ends_the_wait_of_another_thread) {
    std::string said;
    std::thread waiter([&] { said = future.get().error().text(); });
    std::this_thread::sleep_for(5ms);
    future.cancel();
    waiter.join();
    EXPECT_EQ(said, "cancelled: the answer was not wanted any more");
}

TEST_F(FutureTest, an_answer_from_a_handler_wakes_nobody_and_one_from_elsewhere_does) {
    answer_arrives(1);
    EXPECT_EQ(*future.get(), 1);
    EXPECT_EQ(progress.wakes, 0);
    Promise<int> other(&progress);
    other.complete(2);
    EXPECT_EQ(progress.wakes, 1);
}

TEST_F(FutureTest, a_promise_that_is_gone_will_not_be_waited_for) {
    bool told = false;
    Future<int> left;
    {
        Promise<int> short_lived(&progress);
        left = short_lived.future();
        Promise<int> other(&progress);
        (void)other.future().then([&](Result<int> answer) { told = !answer; });
    }
    const auto answer = left.get();
    EXPECT_EQ(answer.error().text(), "there is no answer: the promise was destroyed without one");
    EXPECT_EQ(answer.error().code(), ErrorCode::cancelled);
    EXPECT_TRUE(told);
}

TEST_F(FutureTest, destroying_it_neither_waits_nor_cancels) {
    { const Future<int> gone = std::move(future); }
    EXPECT_TRUE(promise.complete(1));
    EXPECT_TRUE(progress.forgotten.empty());
}

TEST_F(FutureTest, one_without_an_answer_is_ready_with_an_error) {
    Future<int> other = std::move(future);
    const char* const text = "this future has no answer: it was moved from, or then() took it";
    EXPECT_TRUE(future.is_ready()); // NOLINT: that is the test
    EXPECT_EQ(future.get().error().text(), text);
    EXPECT_EQ(future.then([](Result<int> answer) { return answer.error().text(); }).get().value(), text);
    future.cancel();
    EXPECT_EQ(Future<void>().get().error().text(), text);
}

TEST_F(FutureTest, then_runs_at_once_when_ready) {
    promise.complete(3);
    auto twice = future.then([](Result<int> answer) { return *answer * 2; });
    EXPECT_TRUE(twice.is_ready());
    EXPECT_EQ(*twice.get(), 6);
    EXPECT_FALSE(future.get());
}

TEST_F(FutureTest, then_runs_in_the_handler_that_brings_the_answer) {
    bool in_handler = false;
    auto text = future.then([&](Result<int> answer) {
        in_handler = progress.in_handler();
        return std::to_string(*answer);
    });
    answer_arrives(3);
    EXPECT_FALSE(text.is_ready());
    EXPECT_EQ(*text.get(), "3");
    EXPECT_TRUE(in_handler);
}

TEST_F(FutureTest, then_takes_apart_what_is_a_result_or_a_future_itself) {
    Promise<std::string> inner(&progress);
    Future<std::string> text = future.then([&](Result<int>) { return inner.future(); });
    promise.complete(1);
    EXPECT_FALSE(text.is_ready());
    inner.complete(std::string("inner"));
    Future<int> length = text.then([](Result<std::string> answer) -> Result<int> {
        if (answer->empty()) return error("empty");
        return static_cast<int>(answer->size());
    });
    EXPECT_EQ(*length.get(), 5);
}

TEST_F(FutureTest, what_then_was_given_may_fail_throw_and_answer_nothing) {
    Future<void> done = future.then([](Result<int>) {});
    promise.complete(1);
    EXPECT_TRUE(done.get());
    Future<int> thrown = done.then([](Result<void>) -> int { throw std::runtime_error("no luck"); });
    EXPECT_EQ(thrown.get().error().text(), "what was given to then() threw: no luck");
    EXPECT_EQ(Future<int>().then([](Result<int>) -> int { throw 5; }).get().error().text(),
              "what was given to then() threw something that is no std::exception");
}

TEST_F(FutureTest, then_may_own_what_can_only_be_moved) {
    Promise<std::unique_ptr<int>> owner(&progress);
    auto sum = owner.future().then(
        [one = std::make_unique<int>(1)](Result<std::unique_ptr<int>> answer) { return *one + **answer; });
    owner.complete(std::make_unique<int>(2));
    EXPECT_EQ(*sum.get(), 3);
}

TEST_F(FutureTest, what_waits_for_an_answer_is_not_called_once_its_own_is_cancelled) {
    bool called = false;
    auto last = future.then([&](Result<int>) { called = true; });
    last.cancel();
    promise.complete(1);
    EXPECT_FALSE(called);
    EXPECT_FALSE(last.get());
}

TEST_F(FutureTest, what_then_was_given_may_throw_an_error) {
    const auto thrown = ready(1).then([](Result<int>) -> int { throw Error(ErrorCode::too_large, "too much"); }).get();
    EXPECT_EQ(thrown.error().text(), "too much");
    EXPECT_EQ(thrown.error().code(), ErrorCode::too_large);
}

TEST_F(FutureTest, a_ready_future_has_its_answer_or_its_error) {
    EXPECT_TRUE(ready(5).is_ready());
    EXPECT_EQ(*ready(std::string("text")).get(), "text");
    EXPECT_TRUE(ready().get());
    EXPECT_TRUE(Future<void>::ready().get());
    EXPECT_EQ(*Future<long>::ready(7).get(), 7);
    EXPECT_EQ(Future<int>::ready(Error("bad luck")).get().error().text(), "bad luck");
    EXPECT_EQ(*ready(5).then([](Result<int> answer) { return *answer + 1; }).get(), 6);
}

TEST_F(FutureTest, a_promise_has_one_future) {
    Future<int> second = promise.future();
    EXPECT_EQ(second.get().error().text(), "the future of this promise was taken before");
    EXPECT_TRUE(promise.complete(1));
    EXPECT_EQ(*future.get(), 1);
}

TEST_F(FutureTest, a_promise_that_was_moved_from_does_nothing) {
    Promise<int> other(std::move(promise));
    EXPECT_FALSE(promise.complete(1)); // NOLINT: that is the test
    EXPECT_TRUE(promise.is_ready());
    EXPECT_EQ(promise.future().get().error().code(), ErrorCode::misuse);
    EXPECT_FALSE(future.is_ready());
    Promise<int> replaced(&progress);
    Future<int> dropped = replaced.future();
    replaced = std::move(other);
    EXPECT_EQ(dropped.get().error().code(), ErrorCode::cancelled);
    EXPECT_TRUE(replaced.complete(2));
    EXPECT_EQ(*future.get(), 2);
    EXPECT_FALSE(replaced.future().get()) << "it was given before";
}

TEST_F(FutureTest, a_continuation_may_take_an_answer_but_not_wait_for_it) {
    Promise<int> never_comes(&progress);
    Future<int> other = never_comes.future(), taken = ready(4);
    std::string text;
    ErrorCode code = ErrorCode::failed;
    Future<int> next = future.then([&](Result<int>) {
        const auto refused = other.get(now() + 10s);
        text = refused.error().text();
        code = refused.error().code();
        return taken.get();
    });
    promise.complete(1);
    EXPECT_EQ(text, "a continuation must not wait for an answer: return the future, or co_await it");
    EXPECT_EQ(code, ErrorCode::misuse);
    EXPECT_EQ(*next.get(), 4);
    EXPECT_FALSE(other.is_ready()) << "it can still be used";
}

TEST_F(FutureTest, what_a_continuation_makes_ready_runs_after_it) {
    std::string order;
    Promise<int> second(&progress);
    (void)second.future().then([&](Result<int>) { order += "2"; });
    (void)future.then([&](Result<int>) {
        order += "(";
        second.complete(1);
        (void)ready(1).then([&](Result<int>) { order += "3"; });
        order += ")";
    });
    promise.complete(1);
    EXPECT_EQ(order, "()23");
}

TEST_F(FutureTest, cancel_reaches_what_a_future_was_made_of) {
    promise.set_asked(42);
    Future<int> last = future.then([](Result<int> answer) { return answer; }).then([](Result<int> answer) {
        return answer;
    });
    last.cancel();
    EXPECT_EQ(progress.forgotten, std::vector<std::uint64_t>{42});
    EXPECT_TRUE(promise.is_ready());
    EXPECT_EQ(last.get().error().code(), ErrorCode::cancelled);
}

TEST_F(FutureTest, cancel_reaches_the_future_that_a_function_has_returned) {
    Promise<int> inner(&progress), late(&progress);
    inner.set_asked(7);
    Future<int> last = future.then([&](Result<int>) { return inner.future(); });
    promise.complete(1);
    last.cancel();
    EXPECT_TRUE(inner.is_ready());
    EXPECT_EQ(progress.forgotten, std::vector<std::uint64_t>{7});
    // Cancelled while the function runs: what it returns is not wanted either.
    Promise<int> first(&progress);
    std::optional<Future<int>> own;
    own = first.future().then([&](Result<int>) {
        own->cancel();
        return late.future();
    });
    first.complete(1);
    EXPECT_TRUE(late.is_ready());
}

TEST_F(FutureTest, what_was_asked_is_forgotten_before_anybody_sees_it_cancelled) {
    promise.set_asked(42);
    bool was_forgotten = false;
    std::optional<Future<void>> seen;
    seen = future.then([&](Result<int>) {}); // is not called
    bool is_ready_early = true;
    progress.on_forget = [&] {
        is_ready_early = seen->is_ready() || promise.is_ready();
        was_forgotten = true;
    };
    seen->cancel();
    EXPECT_TRUE(was_forgotten);
    EXPECT_FALSE(is_ready_early);
    EXPECT_TRUE(seen->is_ready());
}

TEST(FutureThreads, an_answer_meets_then_and_cancel_on_other_threads) {
    FakeProgress progress;
    int answered = 0, cancelled = 0;
    for (int round = 0; round < 300; ++round) {
        Promise<int> promise(&progress), other(&progress);
        Future<int> future = promise.future(), unwanted = other.future();
        std::atomic<int> calls{0};
        std::thread completer([&] { promise.complete(round), other.complete(round); });
        std::thread canceller([&] { unwanted.cancel(); });
        Future<int> next = future.then([&](Result<int> answer) { return ++calls, *answer + 1; });
        EXPECT_EQ(*next.get(), round + 1);
        ++(unwanted.get() ? answered : cancelled);
        completer.join(), canceller.join();
        EXPECT_EQ(calls, 1);
    }
    EXPECT_EQ(answered + cancelled, 300);
}

} // namespace
} // namespace kumi::engine
