#include "kumi/device/composite/bias.hpp"

#include "model/explorer.hpp"

#include <gtest/gtest.h>
#include <memory>

namespace kumi::device::composite {
namespace {

/// The first thread works on something twice, with the lock if it must; the second comes and works on it with the lock.
/// The explorer finds accesses at the same time.
template <class Memory>
model::Outcome explore_two_threads() {
    return model::explore([]() -> model::Scenario {
        struct State {
            Bias<Memory> bias;
            typename Memory::template Atomic<bool> taken{false};
            model::Plain<int> work{0};
        };
        auto state = std::make_shared<State>();
        const auto try_locked = [=] {
            if (state->taken.exchange(true, std::memory_order_acquire)) return; // another time
            state->work.set(state->work.get() + 1);
            state->taken.store(false, std::memory_order_release);
        };
        const auto first = [=] {
            for (int i = 0; i < 2; ++i) {
                if (!state->bias.enter()) {
                    try_locked();
                    continue;
                }
                state->work.set(state->work.get() + 1);
                state->bias.leave();
            }
        };
        const auto second = [=] {
            state->bias.revoke();
            if (!state->bias.is_inside()) try_locked(); // else it would wait
        };
        return {{first, second}, [] {}};
    });
}

struct NoHeavyFence : model::Memory {
    static void heavy_fence() noexcept {}
};

TEST(BiasModel, the_first_thread_and_those_that_lock_are_never_inside_at_once) {
    const model::Outcome outcome = explore_two_threads<model::Memory>();
    EXPECT_FALSE(outcome.failure) << *outcome.failure;
    EXPECT_TRUE(outcome.complete);
    EXPECT_GT(outcome.executions, 5u);
}

TEST(BiasModel, the_proof_fails_without_the_fence) { EXPECT_TRUE(explore_two_threads<NoHeavyFence>().failure); }

} // namespace
} // namespace kumi::device::composite
