#include "kumi/base/sync/errand_list.hpp"

#include "kumi/base/sync/biased_lock.hpp"
#include "model/proof.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

namespace kumi::base {
namespace {

constexpr auto seq_cst = std::memory_order_seq_cst;

/// A lock whose threads leave errands, as errand_list.hpp has it.
template <class Memory>
struct Desk {
    struct Errand : ErrandLink {
        model::Plain<int> what{0};
        int runs = 0;
    };

    BiasedLock<Memory> lock;
    ErrandList<Memory> list;
    Errand errands[2];
    model::Plain<int> work{0}; // with the lock

    void run_all() {
        for (ErrandLink* next = list.take_all(); next != nullptr;) {
            auto& errand = static_cast<Errand&>(*next);
            next = next->next;
            work.set(work.get() + errand.what.get());
            ++errand.runs;
        }
    }
    void unlock() {
        lock.unlock(seq_cst);
        while (list.has_any() && lock.try_lock(seq_cst)) {
            run_all();
            lock.unlock(seq_cst);
        }
    }
    void leave(Errand& errand) {
        errand.what.set(1);
        list.add(errand);
        if (!lock.try_lock(seq_cst)) return;
        run_all();
        unlock();
    }
};

/// Some threads take the lock, or find it taken; the others leave errands.
template <class Memory>
model::Outcome explore(unsigned takers, unsigned adders) {
    return model::explore([=]() -> model::Scenario {
        auto desk = std::make_shared<Desk<Memory>>();
        model::Scenario scenario;
        for (unsigned i = 0; i < takers; ++i)
            scenario.threads.push_back([=] {
                if (!desk->lock.try_lock()) return;
                desk->work.set(desk->work.get() + 1);
                desk->unlock();
            });
        for (unsigned i = 0; i < adders; ++i) scenario.threads.push_back([=] { desk->leave(desk->errands[i]); });
        scenario.finally = [=] {
            for (unsigned i = 0; i < adders; ++i) model::check(desk->errands[i].runs == 1, "an errand was forgotten");
        };
        return scenario;
    });
}

/// Like model::Memory, but some accesses that should be seq_cst are not.
enum class Weak { loads, stores, updates };
template <Weak weak>
struct WeakMemory : model::Memory {
    template <class T>
    class Atomic {
    public:
        explicit Atomic(T value = {}) : atomic_(value) {}

        T load(std::memory_order order) const {
            return atomic_.load(weak == Weak::loads && order == seq_cst ? std::memory_order_acquire : order);
        }
        void store(T value, std::memory_order order) {
            atomic_.store(value, weak == Weak::stores && order == seq_cst ? std::memory_order_release : order);
        }
        T exchange(T value, std::memory_order order) { return atomic_.exchange(value, order); }
        bool compare_exchange_strong(T& expected, T desired, std::memory_order order) {
            return atomic_.compare_exchange_strong(
                expected, desired, weak == Weak::updates && order == seq_cst ? std::memory_order_acq_rel : order);
        }

    private:
        model::Atomic<T> atomic_;
    };
};

TEST(ErrandListModel, no_errand_is_forgotten) {
    model::expect_proved(explore<model::Memory>(1, 1));
    model::expect_proved(explore<model::Memory>(2, 1));
    model::expect_proved(explore<model::Memory>(0, 2)); // one taker more takes a minute
}

TEST(ErrandListModel, the_proof_fails_where_an_order_is_weaker) {
    EXPECT_TRUE(explore<WeakMemory<Weak::loads>>(1, 1).failure);
    EXPECT_TRUE(explore<WeakMemory<Weak::stores>>(1, 1).failure);
    EXPECT_TRUE(explore<WeakMemory<Weak::updates>>(1, 1).failure);
}

TEST(ErrandList, gives_all_errands_the_oldest_first_and_once) {
    ErrandList<MachineMemory> list;
    EXPECT_FALSE(list.has_any());
    EXPECT_EQ(list.take_all(), nullptr);
    ErrandLink errands[3];
    for (ErrandLink& errand : errands) list.add(errand);
    EXPECT_TRUE(list.has_any() && list.seems_to_have_any());
    const ErrandLink* next = list.take_all();
    for (const ErrandLink& errand : errands) {
        ASSERT_EQ(next, &errand);
        next = next->next;
    }
    EXPECT_EQ(next, nullptr);
    EXPECT_FALSE(list.has_any() || list.seems_to_have_any());
}

} // namespace
} // namespace kumi::base
