#include "kumi/engine/progress/turn_lock.hpp"

#include "kumi/pm/wait.hpp"
#include "loopback/threads.hpp"

#include <barrier>
#include <gtest/gtest.h>
#include <memory>
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

// ---- errands

class Errands : public testing::Test {
protected:
    /// Notes `number` in `run`, with the turn.
    class Note final : public Errand {
    public:
        Note(std::vector<int>& run, int number) noexcept : run_(run), number_(number) {}
        void run(const Turn& turn) noexcept override {
            EXPECT_TRUE(turn.is_inner()) << "it must not wait";
            run_.push_back(number_);
            for (int i = 0; i < 200; ++i) pm::relax(); // others leave errands meanwhile
        }

    private:
        std::vector<int>& run_;
        int number_;
    };

    /// Two threads of the program use the lock.
    void share() {
        { const Turn turn(lock); }
        std::thread([&] { const Turn turn(lock); }).join();
    }
    /// By a thread of its own, which does not wait for the turn.
    void leave(int number) {
        std::thread([&] {
            EXPECT_TRUE(lock.takes_errands());
            lock.leave_errand(std::make_unique<Note>(run, number));
        }).join();
    }

    TurnLock lock{far_away};
    std::vector<int> run; // with the turn
};

TEST_F(Errands, are_left_only_while_another_thread_has_the_turn_and_has_not_lent_it) {
    const auto another_may = [&] {
        bool may = false;
        std::thread([&] { may = lock.takes_errands(); }).join();
        return may;
    };
    share();
    EXPECT_FALSE(lock.takes_errands()) << "the turn is free";
    const Turn turn(lock);
    EXPECT_FALSE(lock.takes_errands()) << "this thread has it";
    EXPECT_TRUE(another_may());
    {
        const Lending lending(turn);
        EXPECT_FALSE(another_may()) << "another thread may borrow it, and the handler may take long";
    }
    EXPECT_TRUE(another_may());
}

TEST_F(Errands, are_run_in_order_before_the_turn_is_given_away) {
    share();
    {
        const Turn turn(lock);
        leave(1);
        leave(2);
        EXPECT_TRUE(run.empty());
    }
    EXPECT_EQ(run, (std::vector{1, 2})) << "no other call was needed";
    const Turn turn(lock);
    leave(3);
    lock.let_others();
    EXPECT_EQ(run, (std::vector{1, 2, 3})) << "a thread that spins runs them, too";
}

TEST_F(Errands, are_bounded) {
    share();
    const auto is_taken = [&] {
        bool may = true;
        std::thread([&] {
            for (int i = 0; i < 64 && may; ++i) {
                lock.leave_errand(std::make_unique<Note>(run, i));
                may = lock.takes_errands();
            }
        }).join();
        return may;
    };
    {
        const Turn turn(lock);
        EXPECT_FALSE(is_taken()) << "the thread is to wait for the turn";
    }
    EXPECT_EQ(run.size(), 64u);
    const Turn turn(lock);
    leave(64);
}

TEST_F(Errands, are_run_before_the_thread_that_left_them_goes_on_with_the_turn) {
    share();
    std::atomic<bool> is_left{false}, has_gone_on{false};
    std::thread other;
    {
        const Turn turn(lock);
        other = std::thread([&] {
            ASSERT_TRUE(lock.takes_errands());
            lock.leave_errand(std::make_unique<Note>(run, 1));
            is_left = true;
            const Turn call(lock); // borrowed
            EXPECT_TRUE(call.is_borrowed());
            EXPECT_EQ(run, std::vector{1});
            has_gone_on = true;
        });
        EXPECT_TRUE(comes_true([&] { return is_left.load(); }));
        const Lending lending(turn);
        EXPECT_TRUE(comes_true([&] { return has_gone_on.load(); }));
    }
    other.join();
}

TEST_F(Errands, are_run_before_a_handler_and_before_its_calls) {
    share();
    const Turn turn(lock);
    leave(1);
    lock.lend();
    EXPECT_EQ(run, std::vector{1}) << "the handler may take long";
    {
        const Turn call(lock); // not lent meanwhile
        leave(2);
    }
    EXPECT_EQ(run, (std::vector{1, 2}));
    std::thread([&] { // as if it had looked just before the turn was lent
        lock.leave_errand(std::make_unique<Note>(run, 3));
    })
        .join();
    EXPECT_EQ(run, (std::vector{1, 2, 3})) << "the thread has borrowed the turn";
    lock.reclaim();
}

/// Many short rounds: what is forgotten at the end of one is seen.
TEST_F(Errands, of_many_threads_are_all_run_in_the_order_of_each) {
    share();
    constexpr int threads = 3, rounds = 20000, steps = 4;
    int round = 0, wrong = 0, left_in_all = 0;
    std::atomic<int> left{0};
    const auto check = [&]() noexcept { // of all threads, while they wait; each has sent 0, 1, ... of its own
        std::vector<int> next(threads, 0);
        for (const int number : run) wrong += number % steps != next[static_cast<std::size_t>(number / steps)]++;
        wrong += run.size() != std::size_t{threads} * steps;
        run.clear();
        left_in_all += left.exchange(0);
        ++round;
    };
    std::barrier end_of_round(threads, check);
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread)
        all.emplace_back([&, thread] {
            for (int i = 0; i < rounds; ++i) {
                for (int step = 0; step < steps; ++step) {
                    const int number = thread * steps + step;
                    if ((i % 2 == 0 || step != steps - 1) && lock.takes_errands()) {
                        ++left;
                        lock.leave_errand(std::make_unique<Note>(run, number));
                    } else {
                        const Turn turn(lock);
                        run.push_back(number);
                        for (int spin = 0; spin < 200; ++spin) pm::relax();
                        if (i % 64 == 0) std::this_thread::yield(); // others come also where they share a core
                    }
                }
                end_of_round.arrive_and_wait();
            }
        });
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(wrong, 0) << "an errand was forgotten, or run too late";
    EXPECT_EQ(round, rounds);
    EXPECT_GT(left_in_all, 0);
}

} // namespace
} // namespace kumi::engine::turn_lock_test
