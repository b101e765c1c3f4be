#include "kumi/engine/turn_lock.hpp"

#include "model/explorer.hpp"

#include <gtest/gtest.h>
#include <memory>

namespace kumi::engine {
namespace {

/// The owner works on something twice; a visitor comes once, and goes again or stays. The explorer finds accesses at
/// the same time. Whoever would have to wait leaves it.
template <class Memory>
model::Outcome explore_visit(bool stays) {
    return model::explore([=]() -> model::Scenario {
        struct State {
            TurnLock<Memory> lock;
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

struct NoHeavyFence : model::Memory {
    static void heavy_fence() noexcept {}
};

TEST(TurnLockModel, owner_and_visitor_are_never_inside_at_once) {
    for (const bool stays : {false, true}) {
        const model::Outcome outcome = explore_visit<model::Memory>(stays);
        EXPECT_FALSE(outcome.failure) << *outcome.failure;
        EXPECT_TRUE(outcome.complete);
        EXPECT_GT(outcome.executions, 5u);
    }
}

TEST(TurnLockModel, the_proof_fails_without_the_fence) { EXPECT_TRUE(explore_visit<NoHeavyFence>(false).failure); }

} // namespace
} // namespace kumi::engine
