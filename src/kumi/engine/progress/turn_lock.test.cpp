#include "kumi/engine/progress/turn_lock.hpp"

#include "loopback/threads.hpp"

#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace kumi::engine::turn_lock_test {
namespace {

using namespace std::chrono_literals;
using loopback::comes_true;
using loopback::far_away;
using Hold = TurnLock::Hold;

TEST(TurnLock, a_thread_that_had_the_turn_gets_it_again) {
    TurnLock lock(far_away);
    EXPECT_FALSE(lock.is_held_here());
    const Turn turn(lock);
    EXPECT_FALSE(turn.is_inner());
    EXPECT_TRUE(lock.is_held_here());
    {
        const Turn inner(lock);
        EXPECT_TRUE(inner.is_inner());
        EXPECT_FALSE(inner.is_borrowed());
    }
    EXPECT_TRUE(lock.is_held_here());
}

TEST(TurnLock, only_a_thread_that_has_the_turn_lends_it_and_only_once) {
    TurnLock lock(far_away);
    EXPECT_FALSE(lock.lend());
    const Turn turn(lock);
    EXPECT_TRUE(lock.lend());
    EXPECT_FALSE(lock.lend());
    {
        const Turn inner(lock);
        EXPECT_TRUE(inner.is_inner());
        EXPECT_FALSE(inner.is_borrowed());
        EXPECT_TRUE(lock.lend()) << "a call took it back";
        lock.reclaim();
    }
    EXPECT_FALSE(lock.lend()) << "it is lent again after the call";
    lock.reclaim();
    EXPECT_TRUE(lock.lend());
    lock.reclaim();
}

/// Which thread owns the lock makes a difference to how the others take it.
class Loans : public testing::TestWithParam<bool> {
protected:
    Loans() {
        if (!GetParam()) return;
        const Turn turn(lock); // this thread, which lends, owns the lock
    }
    TurnLock lock{far_away};
};

TEST_P(Loans, a_thread_borrows_the_turn_while_another_runs_code_of_the_program) {
    std::mutex mutex;
    std::atomic<bool> is_locked{false}, has_sent{false};
    std::thread other;
    {
        const Turn turn(lock);
        const Lending lending(turn);
        other = std::thread([&] {
            const std::lock_guard guard(mutex);
            is_locked = true;
            {
                const Turn call(lock);
                EXPECT_TRUE(call.is_inner());
                EXPECT_TRUE(call.is_borrowed());
                EXPECT_FALSE(lock.is_held_here()) << "it is in no handler";
                EXPECT_TRUE(lock.is_borrowed_here());
                const Turn inner(lock);
                EXPECT_TRUE(inner.is_inner());
                EXPECT_TRUE(inner.is_borrowed());
                const Lending nothing(inner);
            }
            has_sent = true;
        });
        ASSERT_TRUE(comes_true([&] { return is_locked.load(); }));
        const std::lock_guard guard(mutex);
        EXPECT_TRUE(has_sent);
        EXPECT_TRUE(lock.is_held_here());
        EXPECT_FALSE(lock.is_borrowed_here());
        EXPECT_FALSE(lock.lend()) << "the borrower did not end the loan";
    }
    other.join();
    const Turn turn(lock);
    EXPECT_FALSE(turn.is_inner());
}

TEST_P(Loans, a_turn_that_is_not_lent_is_not_borrowed) {
    std::atomic<bool> has_come{false}, has_it{false};
    std::thread other;
    {
        const Turn turn(lock);
        { const Lending lending(turn); }
        other = std::thread([&] {
            has_come = true;
            const Turn call(lock);
            has_it = true;
            EXPECT_FALSE(call.is_inner());
        });
        ASSERT_TRUE(comes_true([&] { return has_come.load(); }));
        std::this_thread::sleep_for(20ms);
        EXPECT_FALSE(has_it);
    }
    other.join();
    EXPECT_TRUE(has_it);
}

TEST_P(Loans, the_lender_waits_for_the_borrower_before_it_goes_on_or_calls_the_engine) {
    for (const bool by_call : {false, true}) {
        std::atomic<bool> has_it{false}, has_given_back{false};
        std::thread other;
        {
            const Turn turn(lock);
            std::optional<Lending> lending(std::in_place, turn);
            other = std::thread([&] {
                const Turn call(lock);
                has_it = true;
                std::this_thread::sleep_for(20ms);
                has_given_back = true;
            });
            ASSERT_TRUE(comes_true([&] { return has_it.load(); }));
            if (by_call) {
                const Turn call(lock);
                EXPECT_TRUE(has_given_back);
                EXPECT_FALSE(call.is_borrowed());
            }
            lending.reset();
            EXPECT_TRUE(has_given_back);
        }
        other.join();
    }
}

TEST_P(Loans, one_thread_at_a_time_has_the_turn_whole_reclaimed_or_borrowed) {
    constexpr int threads = 3, enough = 10;
    long count = 0; // not atomic
    std::atomic<long> rounds{0};
    std::atomic<int> borrowed{0};
    const Instant end = now() + far_away;
    std::mutex mutex;
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread)
        all.emplace_back([&, thread] {
            for (; borrowed < enough && now() < end; ++rounds) {
                if (thread == 0) { // handlers that take the mutex and call the engine
                    const Turn turn(lock);
                    ++count;
                    const Lending lending(turn);
                    const std::lock_guard guard(mutex);
                    const Turn call(lock);
                    ++count;
                } else {
                    const std::lock_guard guard(mutex);
                    const Turn call(lock);
                    borrowed += call.is_borrowed() ? 1 : 0;
                    ++count;
                    ++count;
                }
            }
        });
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(count, 2 * rounds);
    EXPECT_GE(borrowed, enough);
}

INSTANTIATE_TEST_SUITE_P(TurnLock, Loans, testing::Bool(), [](const auto& info) {
    return info.param ? "of_the_owner" : "of_a_visitor";
});

} // namespace
} // namespace kumi::engine::turn_lock_test
