// What engine/future.hpp promises. What has to do with other nodes runs in every world, the rest once.

#include "engine/node.hpp"

#include "kumi/engine/call/invoke.hpp"

#include <atomic>
#include <optional>
#include <string>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

// ---- once: futures without a job

TEST(FuturePromise, a_future_is_complete_exactly_once_and_the_first_counts) {
    Promise<int> promise;
    auto future = promise.future();
    EXPECT_FALSE(future.is_ready());
    EXPECT_TRUE(promise.complete(1));
    EXPECT_FALSE(promise.complete(2));
    future.cancel();
    EXPECT_TRUE(future.is_ready());
    EXPECT_EQ(good(future.get()), 1);

    Promise<int> late;
    auto cancelled = late.future();
    cancelled.cancel();
    EXPECT_TRUE(late.is_ready()) << "nobody wants an answer any more";
    EXPECT_FALSE(late.complete(2));
    expect_code(cancelled.get(), ErrorCode::cancelled);
}

TEST(FuturePromise, the_answer_is_taken_once) {
    auto future = ready(std::string("answer"));
    EXPECT_EQ(good(future.get()), "answer");
    expect_code(future.get(), ErrorCode::misuse);
}

TEST(FuturePromise, a_ready_future_has_its_answer_or_its_error) {
    EXPECT_EQ(good(ready(5).get()), 5);
    good(ready().get());
    expect_code(Future<int>::ready(Error(ErrorCode::too_large, "no")).get(), ErrorCode::too_large, {"no"});
}

TEST(FuturePromise, one_that_was_moved_from_or_taken_is_ready_with_an_error) {
    auto first = ready(5);
    auto second = std::move(first);
    EXPECT_TRUE(first.is_ready());
    expect_code(first.get(), ErrorCode::misuse);
    expect_code(first.then([](Result<int> answer) { return answer; }).get(), ErrorCode::misuse);
    auto third = second.then([](Result<int> answer) { return answer; });
    EXPECT_TRUE(second.is_ready());
    expect_code(second.get(), ErrorCode::misuse);
    second.cancel();
    EXPECT_EQ(good(third.get()), 5);
    expect_code(Future<void>().get(), ErrorCode::misuse);
}

TEST(FuturePromise, a_promise_that_is_destroyed_or_replaced_without_an_answer_is_an_error) {
    std::optional<Promise<int>> promise(std::in_place);
    auto future = promise->future();
    promise.reset();
    expect_code(future.get(), ErrorCode::cancelled);
    Promise<int> other;
    auto replaced = other.future();
    other = Promise<int>();
    expect_code(replaced.get(), ErrorCode::cancelled);
    auto kept = other.future();
    Promise<int>& same = other;
    other = std::move(same);
    EXPECT_TRUE(other.complete(3)) << "moved to itself";
    EXPECT_EQ(good(kept.get()), 3);
}

TEST(FuturePromise, a_promise_gives_its_future_once) {
    Promise<int> promise;
    auto future = promise.future();
    expect_code(promise.future().get(), ErrorCode::misuse);
    Promise<int> moved = std::move(promise);
    expect_code(moved.future().get(), ErrorCode::misuse);
    EXPECT_TRUE(promise.is_ready());
    EXPECT_FALSE(promise.complete(1)) << "it was moved from";
    expect_code(promise.future().get(), ErrorCode::misuse);
    EXPECT_TRUE(moved.complete(1));
    EXPECT_EQ(good(future.get()), 1);
}

TEST(FuturePromise, get_ends_at_its_deadline_and_may_be_called_again) {
    Promise<int> promise;
    auto future = promise.future();
    const Instant begin = now();
    expect_code(future.get(begin + 10ms), ErrorCode::timed_out);
    EXPECT_GE(now() - begin, 10ms);
    expect_code(future.get(begin), ErrorCode::timed_out);
    std::thread other([&] {
        std::this_thread::sleep_for(5ms);
        promise.complete(4);
    });
    EXPECT_EQ(good(future.get(deadline())), 4);
    other.join();
}

TEST(FuturePromise, then_runs_at_once_if_the_answer_is_there_and_otherwise_on_the_thread_that_completes) {
    const auto me = std::this_thread::get_id();
    std::thread::id first, second;
    (void)ready(1).then([&](Result<int>) { first = std::this_thread::get_id(); });
    EXPECT_EQ(first, me);
    Promise<int> promise;
    (void)promise.future().then([&](Result<int>) { second = std::this_thread::get_id(); });
    EXPECT_EQ(second, std::thread::id());
    std::thread::id other_id;
    std::thread other([&] {
        other_id = std::this_thread::get_id();
        promise.complete(1);
    });
    other.join();
    EXPECT_EQ(second, other_id);
}

TEST(FuturePromise, then_gives_on_what_its_function_answers_whether_value_result_or_future) {
    EXPECT_EQ(good(ready(1).then([](Result<int> value) { return *value + 1; }).get()), 2);
    EXPECT_EQ(good(ready(1).then([](Result<int> value) { return Result<int>(*value + 2); }).get()), 3);
    expect_code(ready(1).then([](Result<int>) { return Result<int>(Error(ErrorCode::no_memory, "none")); }).get(),
                ErrorCode::no_memory);
    Promise<std::string> last;
    auto chained = ready(1).then([&](Result<int>) { return last.future(); });
    EXPECT_FALSE(chained.is_ready());
    last.complete(std::string("end"));
    EXPECT_EQ(good(chained.get()), "end");
    good(ready(1).then([](Result<int>) {}).get());
    auto only_moved = std::make_unique<int>(6);
    EXPECT_EQ(good(ready().then([own = std::move(only_moved)](Result<void>) { return *own; }).get()), 6);
}

TEST(FuturePromise, an_exception_becomes_the_error_of_the_next_future) {
    expect_error(ready(1).then([](Result<int>) -> int { throw std::runtime_error("no way"); }).get(), {"no way"});
    expect_error(ready(1).then([](Result<int>) -> int { throw 5; }).get(), {});
    expect_code(ready(1).then([](Result<int>) -> int { throw Error(ErrorCode::too_large, "mine"); }).get(),
                ErrorCode::too_large, {"mine"});
    expect_code(Future<int>::ready(Error(ErrorCode::refused, "first"))
                    .then([](Result<int> value) { return value; })
                    .get(),
                ErrorCode::refused, {"first"});
}

TEST(FuturePromise, a_continuation_must_not_wait) {
    Promise<int> unready;
    auto other = unready.future();
    auto refused = ready(1).then([&](Result<int>) { return other.get(); });
    expect_code(refused.get(), ErrorCode::misuse, {"continuation"});
    EXPECT_EQ(good(ready(1).then([](Result<int>) { return ready(2).get(); }).get()), 2) << "what is ready is taken";
    unready.complete(3);
    EXPECT_EQ(good(other.get()), 3) << "it can still be used";
}

TEST(FuturePromise, what_a_continuation_makes_ready_runs_when_it_has_returned) {
    std::string order;
    Promise<int> second;
    (void)second.future().then([&](Result<int>) { order += "second;"; });
    (void)ready(1).then([&](Result<int>) {
        second.complete(1);
        (void)ready(2).then([&](Result<int>) { order += "third;"; });
        order += "first;";
    });
    EXPECT_EQ(order, "first;second;third;");
}

TEST(FuturePromise, a_chain_of_any_length_takes_no_stack) {
    Promise<int> first;
    auto chain = first.future();
    constexpr int links = 100'000;
    for (int i = 0; i < links; ++i) chain = chain.then([](Result<int> value) { return *value + 1; });
    first.complete(0);
    EXPECT_EQ(good(chain.get()), links);
}

TEST(FuturePromise, a_function_whose_future_is_cancelled_first_is_not_called) {
    Promise<int> promise;
    bool was_called = false;
    auto after = promise.future().then([&](Result<int>) { was_called = true; });
    after.cancel();
    EXPECT_TRUE(promise.is_ready()) << "what it was made of is cancelled, too";
    EXPECT_FALSE(promise.complete(1));
    EXPECT_FALSE(was_called);
    expect_code(after.get(), ErrorCode::cancelled);
}

TEST(FuturePromise, destroying_a_future_neither_waits_nor_cancels) {
    Promise<int> promise;
    { const auto dropped = promise.future(); }
    EXPECT_FALSE(promise.is_ready());
    EXPECT_TRUE(promise.complete(1));
    bool was_called = false;
    Promise<int> other;
    (void)other.future().then([&](Result<int>) { was_called = true; });
    other.complete(1);
    EXPECT_TRUE(was_called);
}

TEST(FuturePromise, is_ready_and_cancel_may_be_called_while_another_thread_waits) {
    Promise<int> promise;
    auto future = promise.future();
    std::thread waits([&] { expect_code(future.get(deadline()), ErrorCode::cancelled); });
    std::this_thread::sleep_for(2ms);
    EXPECT_FALSE(future.is_ready());
    future.cancel();
    waits.join();
}

// ---- in every world

class FuturePromises : public EngineTest {};

TEST_P(FuturePromises, get_before_the_answer_is_refused_in_a_handler_and_the_future_can_still_be_used) {
    run(2, [](Channel& channel) {
        std::optional<Future<int>> asked;
        std::atomic<bool> was_refused{false};
        Handlers handlers;
        std::optional<Function<int()>> seven;
        seven = handlers.function("seven", [] { return 7; });
        const auto ask = handlers.add("ask", [&](Call& call) {
            asked = call.engine().invoke(1 - call.engine().node(), *seven); // nothing is taken in while a handler runs
            expect_code(asked->get(deadline()), ErrorCode::misuse, {"handler"});
            was_refused = true;
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        good(engine.send(1 - engine.node(), ask));
        EXPECT_TRUE(engine.wait_until([&] { return was_refused.load(); }, deadline()));
        EXPECT_EQ(good(asked->get(deadline())), 7);
        settle(engine);
    });
}

TEST_P(FuturePromises, a_continuation_of_an_answer_may_ask_further_and_must_not_wait) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto next = handlers.function("next", [](int value) { return value + 1; });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        auto last = engine.invoke(other, next, 0).then([&](Result<int> one) {
            expect_code(engine.invoke(other, next, 9).get(deadline()), ErrorCode::misuse);
            return engine.invoke(other, next, *one);
        });
        EXPECT_EQ(good(last.get(deadline())), 2);
        settle(engine);
    });
}

TEST_P(FuturePromises, one_that_is_dropped_or_cancelled_does_not_keep_its_function_from_running) {
    run(2, [](Channel& channel) {
        std::atomic<int> ran{0};
        Handlers handlers;
        const auto count = handlers.function("count", [&] { return ++ran; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        const Node other = 1 - engine.node();
        { const auto dropped = engine.invoke(other, count); }
        auto cancelled = engine.invoke(other, count);
        cancelled.cancel();
        if (const auto answer = cancelled.get(deadline()); !answer) expect_code(answer, ErrorCode::cancelled);
        good(engine.sync(deadline()));
        EXPECT_TRUE(engine.wait_until([&] { return ran == 2; }, deadline())) << ran;
        settle(engine);
    });
}

TEST_P(FuturePromises, a_promise_of_the_program_is_completed_by_a_handler_while_a_thread_waits) {
    run(2, [](Channel& channel) {
        Promise<int> promise;
        auto future = promise.future();
        Handlers handlers;
        const auto give = handlers.add("give", [&](Call&, int value) { EXPECT_TRUE(promise.complete(value)); });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        good(engine.send(1 - engine.node(), give, 41));
        EXPECT_EQ(good(future.get(deadline())), 41);
        settle(engine);
    });
}

TEST_P(FuturePromises, futures_outlive_their_job_and_say_that_it_has_ended) {
    run(2, [](Channel& channel) {
        Promise<int> never_kept;
        std::optional<Future<int>> unanswered, answered, waited_for;
        std::optional<Promise<int>> of_program;
        int continued = 0;
        std::thread waits;
        {
            Handlers handlers;
            const auto wait = handlers.function("wait", [&] { return never_kept.future(); });
            const auto seven = handlers.function("seven", [] { return 7; });
            Engine engine = open(channel, std::move(handlers));
            good(engine.barrier(deadline()));
            unanswered = engine.invoke(1 - engine.node(), wait);
            answered = engine.invoke(1 - engine.node(), seven);
            EXPECT_TRUE(engine.wait_until([&] { return answered->is_ready(); }, deadline()));
            of_program.emplace();
            waited_for = of_program->future();
            waits = std::thread([&] { expect_code(waited_for->get(), ErrorCode::ended); });
            good(engine.barrier(deadline()));
        }
        waits.join(); // the end of the job ends the wait
        const auto late = unanswered->get();
        EXPECT_FALSE(late);
        if (!late) {
            EXPECT_TRUE(late.error().code() == ErrorCode::ended || late.error().code() == ErrorCode::node_lost)
                << late.error().text();
        }
        auto chained = answered->then([&](Result<int> value) { return ++continued, *value + 1; });
        EXPECT_EQ(good(chained.get()), 8);
        EXPECT_EQ(continued, 1);
        expect_code(waited_for->get(), ErrorCode::ended);
        EXPECT_TRUE(of_program->complete(5)) << "the program may still keep its promise";
        EXPECT_EQ(good(waited_for->get()), 5);
    });
}

KUMI_ENGINE_WORLDS(FuturePromises);

} // namespace
} // namespace kumi::engine_test
