#include "kumi/base/sync/biased_lock.hpp"

#include "model/explorer.hpp"

#include <gtest/gtest.h>
#include <memory>

namespace kumi::base {
namespace {

/// The owner works on something twice; a visitor comes once, and goes again or stays. The explorer finds accesses at
/// the same time. A thread that would have to wait gives up.
template <class Memory>
model::Outcome explore_visit(bool stays) {
    return model::explore([=]() -> model::Scenario {
        struct State {
            BiasedLock<Memory, Visits::may_end> lock;
            model::Plain<int> work{0};
        };
        auto state = std::make_shared<State>();
        const auto do_work = [=] { state->work.set(state->work.get() + 1); };
        const auto owner = [=] {
            for (int i = 0; i < 2; ++i) {
                if (state->lock.try_lock_as_owner()) {
                    do_work();
                    state->lock.unlock_as_owner();
                } else if (state->lock.try_lock()) {
                    do_work();
                    state->lock.unlock();
                }
            }
        };
        const auto visitor = [=] {
            if (!state->lock.try_lock()) return;
            state->lock.begin_visit();
            if (state->lock.is_owner_outside()) {
                do_work();
                if (!stays) state->lock.end_visit();
            }
            state->lock.unlock();
        };
        return {{owner, visitor}, [] {}};
    });
}

/// The owner works on something twice, with a lock of the caller's if it must; a visitor stays and works on it with
/// that lock.
template <class Memory>
model::Outcome explore_visit_that_never_ends() {
    return model::explore([]() -> model::Scenario {
        struct State {
            BiasedLock<Memory, Visits::never_end> bias;
            typename Memory::template Atomic<bool> taken{false};
            model::Plain<int> work{0};
        };
        auto state = std::make_shared<State>();
        const auto try_locked = [=] {
            if (state->taken.exchange(true, std::memory_order_acquire)) return; // another time
            state->work.set(state->work.get() + 1);
            state->taken.store(false, std::memory_order_release);
        };
        const auto owner = [=] {
            for (int i = 0; i < 2; ++i) {
                if (!state->bias.try_lock_as_owner_again()) {
                    try_locked();
                    continue;
                }
                state->work.set(state->work.get() + 1);
                state->bias.unlock_as_owner_once();
            }
        };
        const auto visitor = [=] {
            state->bias.begin_visit();
            if (state->bias.is_owner_outside()) try_locked(); // else it would wait
        };
        return {{owner, visitor}, [] {}};
    });
}

struct BiasedLockWithoutHeavyFence : model::Memory {
    static void heavy_fence() noexcept {}
};

TEST(BiasedLockModel, owner_and_visitor_are_never_inside_at_once) {
    for (const bool stays : {false, true}) {
        const model::Outcome outcome = explore_visit<model::Memory>(stays);
        EXPECT_FALSE(outcome.failure) << *outcome.failure;
        EXPECT_TRUE(outcome.complete);
        EXPECT_GT(outcome.executions, 5u);
    }
}

TEST(BiasedLockModel, an_owner_and_visitors_that_stay_are_never_inside_at_once) {
    const model::Outcome outcome = explore_visit_that_never_ends<model::Memory>();
    EXPECT_FALSE(outcome.failure) << *outcome.failure;
    EXPECT_TRUE(outcome.complete);
    EXPECT_GT(outcome.executions, 5u);
}

TEST(BiasedLockModel, the_proofs_fail_without_the_fence) {
    EXPECT_TRUE(explore_visit<BiasedLockWithoutHeavyFence>(false).failure);
    EXPECT_TRUE(explore_visit_that_never_ends<BiasedLockWithoutHeavyFence>().failure);
}

TEST(BiasedLock, an_owner_that_is_inside_twice_is_outside_after_it_left_twice) {
    BiasedLock<MachineMemory, Visits::never_end> lock;
    ASSERT_TRUE(lock.try_lock_as_owner_again());
    ASSERT_TRUE(lock.try_lock_as_owner_again());
    lock.unlock_as_owner_once();
    EXPECT_FALSE(lock.is_owner_outside());
    lock.disable();
    EXPECT_FALSE(lock.try_lock_as_owner_again()) << "there is a visit";
    EXPECT_FALSE(lock.is_owner_outside()) << "a refused try changes nothing";
    lock.unlock_as_owner_once();
    EXPECT_TRUE(lock.is_owner_outside());
}

} // namespace
} // namespace kumi::base
