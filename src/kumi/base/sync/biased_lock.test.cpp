#include "kumi/base/sync/biased_lock.hpp"

#include "model/explorer.hpp"

#include <gtest/gtest.h>
#include <memory>

namespace kumi::base {
namespace {

/// The owner works on something twice; a visitor comes once, and goes again or stays. The explorer finds accesses at
/// the same time. A thread that would have to wait gives up.
template <class Memory, Ordered ordered>
model::Outcome explore_visit(bool stays) {
    return model::explore([=]() -> model::Scenario {
        struct State {
            BiasedLock<Memory, ordered> lock;
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

struct MemoryWithoutFences : model::Memory {
    static void heavy_fence() noexcept {}
};

template <Ordered ordered>
void expect_exclusion() {
    for (const bool stays : {false, true}) {
        const model::Outcome outcome = explore_visit<model::Memory, ordered>(stays);
        EXPECT_FALSE(outcome.failure) << *outcome.failure;
        EXPECT_TRUE(outcome.complete);
        EXPECT_GT(outcome.executions, 5u);
    }
}

TEST(BiasedLockModel, owner_and_visitor_are_never_inside_at_once) {
    expect_exclusion<Ordered::by_owner>();
    expect_exclusion<Ordered::by_visitor>();
}

TEST(BiasedLockModel, the_proofs_fail_without_the_fence) {
    EXPECT_TRUE((explore_visit<MemoryWithoutFences, Ordered::by_owner>(false).failure));
    EXPECT_TRUE((explore_visit<MemoryWithoutFences, Ordered::by_visitor>(false).failure));
}

TEST(BiasedLock, an_owner_that_is_refused_is_outside) {
    BiasedLock<MachineMemory> lock;
    ASSERT_TRUE(lock.try_lock_as_owner());
    EXPECT_FALSE(lock.is_owner_outside());
    lock.unlock_as_owner();
    lock.disable();
    EXPECT_FALSE(lock.try_lock_as_owner()) << "there is a visit";
    EXPECT_TRUE(lock.is_owner_outside());
}

} // namespace
} // namespace kumi::base
