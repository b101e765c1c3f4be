// Futures and promises that outlive their job, and promises without any.

#include "kumi/engine/future.hpp"

#include "kumi/engine/engine.hpp"
#include "loopback/victim.hpp"

#include <gtest/gtest.h>
#include <optional>
#include <thread>

namespace kumi::engine::end_of_job_test {
namespace {

using namespace std::chrono_literals;
using loopback::far_away;
using loopback::Sleeper;
using loopback::Victim;

/// A job that ends before the futures that it gave.
class EndOfJob : public testing::Test {
protected:
    EndOfJob() {
        victim.emplace();
        const auto made = victim->dispatcher->segments().add(4096);
        EXPECT_TRUE(made);
        there = {1, made->id, 0};
    }
    void end() { victim.reset(); }

    std::optional<Victim> victim;
    global_ptr<std::uint64_t> there;
};

TEST_F(EndOfJob, then_on_a_ready_future_runs_at_once) {
    Promise<int> promise(&victim->dispatcher->progress());
    Future<int> future = promise.future();
    promise.complete(3);
    end();
    EXPECT_EQ(*future.then([](Result<int> answer) { return *answer + 1; }).get(), 4);
}

TEST_F(EndOfJob, what_the_job_was_to_answer_has_ended) {
    Future<std::uint64_t> asked = victim->engine->memory().async().fetch_add(there, 1);
    Future<std::uint64_t> got = victim->engine->memory().async().read(there);
    std::optional<Result<std::uint64_t>> told;
    Future<void> next = got.then([&](Result<std::uint64_t> answer) { told.emplace(std::move(answer)); });
    EXPECT_FALSE(asked.is_ready());
    victim->engine.reset(); // while nobody is lost
    ASSERT_TRUE(asked.is_ready());
    const auto answer = asked.get();
    EXPECT_EQ(answer.error().code(), ErrorCode::ended);
    EXPECT_EQ(answer.error().text(), "there is no answer: the job has ended");
    ASSERT_TRUE(told);
    EXPECT_EQ(told->error().code(), ErrorCode::ended);
    EXPECT_TRUE(next.get());
}

TEST_F(EndOfJob, a_promise_of_the_program_is_completed_all_the_same) {
    Promise<int> promise, empty;
    Future<int> future = promise.future(), without = empty.future();
    int seen = 0;
    Promise<int> followed;
    Future<void> next = followed.future().then([&](Result<int> answer) { seen = *answer; });
    end();
    EXPECT_EQ(without.get(now() + far_away).error().code(), ErrorCode::ended) << "nobody makes progress for it";
    EXPECT_EQ(without.get().error().code(), ErrorCode::ended) << "without a deadline, too";
    EXPECT_TRUE(promise.complete(5));
    EXPECT_EQ(*future.get(), 5);
    EXPECT_TRUE(followed.complete(6));
    EXPECT_EQ(seen, 6);
    EXPECT_TRUE(next.get());
    without.cancel();
    EXPECT_EQ(without.get().error().code(), ErrorCode::cancelled);
}

TEST_F(EndOfJob, what_was_asked_may_be_cancelled_afterwards) {
    Promise<int> promise(&victim->dispatcher->progress());
    promise.set_asked(12);
    Future<int> future = promise.future();
    end();
    future.cancel();
    EXPECT_EQ(future.get().error().code(), ErrorCode::cancelled);
}

TEST_F(EndOfJob, a_thread_that_waits_is_told) {
    Promise<int> promise;
    Future<int> future = promise.future();
    std::optional<Result<int>> told;
    Sleeper sleeper(*victim, [&](Instant deadline) {
        told.emplace(future.get(deadline));
        return true;
    });
    victim->engine.reset();
    EXPECT_TRUE(sleeper.was_woken());
    EXPECT_EQ(told->error().code(), ErrorCode::ended);
}

TEST_F(EndOfJob, what_a_continuation_begins_while_the_job_ends_is_refused) {
    AsyncMemory memory = victim->engine->memory().async();
    std::vector<std::string> told;
    std::function<void()> try_again = [&] {
        (void)memory.read(there).then([&](Result<std::uint64_t> answer) {
            EXPECT_EQ(answer.error().code(), ErrorCode::ended);
            told.push_back(answer.error().text());
            if (told.size() < 3) try_again();
        });
    };
    try_again();
    victim->engine.reset();
    EXPECT_EQ(told, (std::vector<std::string>{"there is no answer: the job has ended", "get: the job has ended",
                                              "get: the job has ended"}));
}

// ---- promises of the program

TEST(ProgramPromise, waiting_makes_progress_for_the_job_of_the_thread) {
    Promise<int>* own = nullptr;
    Handlers handlers;
    handlers.add("answer", [&](Call&) { own->complete(7); });
    Victim victim(std::move(handlers)); // without a background thread
    Promise<int> promise;
    own = &promise;
    Future<int> future = promise.future();
    victim.hears(1, Kind::first_handler, true);
    EXPECT_EQ(*future.get(now() + far_away), 7);
}

TEST(ProgramPromise, a_promise_from_before_the_job_makes_progress_for_it) {
    Promise<int> promise;
    Handlers handlers;
    handlers.add("answer", [&](Call&) { promise.complete(7); });
    Victim victim(std::move(handlers));
    Future<int> future = promise.future();
    victim.hears(1, Kind::first_handler, true);
    EXPECT_EQ(*future.get(now() + far_away), 7);
}

TEST(ProgramPromise, each_thread_means_the_job_that_it_has_joined) {
    Victim first;
    std::thread other([&] {
        Victim second;
        EXPECT_EQ(ProgressLink::current(), second.dispatcher->progress().link());
    });
    EXPECT_EQ(ProgressLink::current(), first.dispatcher->progress().link());
    other.join();
    std::thread without([&] { EXPECT_EQ(ProgressLink::current(), first.dispatcher->progress().link()); });
    without.join();
    {
        Victim newer;
        EXPECT_EQ(ProgressLink::current(), newer.dispatcher->progress().link());
    }
    EXPECT_EQ(ProgressLink::current(), first.dispatcher->progress().link());
}

TEST(ProgramPromise, without_a_job_a_thread_waits_for_another) {
    ASSERT_EQ(ProgressLink::current(), nullptr);
    Promise<int> promise;
    Future<int> future = promise.future();
    const auto early = future.get(now() + 5ms);
    EXPECT_EQ(early.error().code(), ErrorCode::timed_out);
    std::thread completer([&] {
        std::this_thread::sleep_for(10ms);
        promise.complete(3);
    });
    const Instant end = now() + far_away;
    EXPECT_EQ(*future.get(end), 3);
    EXPECT_LT(now(), end) << "it was woken";
    completer.join();
}

TEST(ProgramPromise, a_handler_must_not_wait_for_one) {
    Promise<int> promise;
    Future<int> future = promise.future();
    std::optional<Result<int>> refused;
    Handlers handlers;
    handlers.add("wait", [&](Call&) { refused.emplace(future.get()); });
    Victim victim(std::move(handlers));
    victim.hears(1, Kind::first_handler, true);
    victim.poll();
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->error().code(), ErrorCode::misuse);
    promise.complete(1);
    EXPECT_EQ(*future.get(), 1);
}

} // namespace
} // namespace kumi::engine::end_of_job_test
