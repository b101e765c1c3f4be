#include "kumi/engine/barrier/host_barrier.hpp"

#include "model/proof.hpp"

#include <array>
#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace kumi::engine {
namespace {

using base::MachineMemory;

static_assert(std::is_standard_layout_v<HostBarrierState<MachineMemory>>);
static_assert(std::is_trivially_destructible_v<HostBarrierState<MachineMemory>>);
static_assert(sizeof(HostBarrierState<MachineMemory>) == 65 * 64);

/// Who calls complete(), and when.
enum class Completing {
    at_once,   // the last, before it does anything else
    late,      // the last, after it has arrived at all that it may: so a later barrier may be completed first
    elsewhere, // the first node, which the last tells: as where nodes of other hosts have to come too
};

struct Case {
    unsigned nodes;
    unsigned sequences;
    Completing completing = Completing::at_once;
    std::uint32_t first = 0; // sequence
};

constexpr unsigned nodes_max = 3, sequences_max = 4;

/// Each node goes through all barriers, as far ahead of those complete as it may.
template <class Memory, std::uint32_t ring>
struct Host {
    explicit Host(const Case& of) : what(of), barrier(state, of.nodes) {
        state.completed.word.store(of.first, std::memory_order_relaxed);
    }

    struct Node {
        unsigned worked = 0, arrived = 0, seen = 0; // barriers
        std::vector<unsigned> to_complete{};        // by this node, some time
        std::array<unsigned, sequences_max> last{}; // 1: it was
    };

    Case what;
    HostBarrierState<Memory, ring> state;
    HostBarrier<Memory, ring> barrier;
    std::array<std::array<model::Plain<unsigned>, sequences_max>, nodes_max> work;
    std::array<typename Memory::template Atomic<unsigned>, sequences_max> told; // to the first node: all have come
    std::array<Node, nodes_max> nodes;

    bool is_done(unsigned node) const { return nodes[node].seen == what.sequences; }

    /// False: it has to wait for others.
    bool try_step(unsigned node) { return nodes[node].arrived < what.sequences ? try_arrive(node) : try_see(node); }

    bool try_arrive(unsigned node) {
        Node& self = nodes[node];
        const unsigned i = self.arrived;
        if (self.worked == i) work[node][self.worked++].set(i + 1);
        if (i >= ring && !complete_some(node, i - ring)) return false;
        const Arrival arrival = barrier.arrive(what.first + i);
        if (arrival == Arrival::early) return false;
        ++self.arrived;
        if (arrival == Arrival::last) on_last(node, i);
        return true;
    }

    void on_last(unsigned node, unsigned i) {
        nodes[node].last[i] = 1;
        if (what.completing == Completing::at_once) barrier.complete(what.first + i);
        if (what.completing == Completing::late) nodes[node].to_complete.push_back(i);
        if (what.completing == Completing::elsewhere) told[i].store(1, std::memory_order_release);
    }

    /// What others may have to wait for before `i` is complete.
    bool complete_some(unsigned node, unsigned i) {
        for (const unsigned late : nodes[node].to_complete) barrier.complete(what.first + late);
        nodes[node].to_complete.clear();
        if (what.completing != Completing::elsewhere || node != 0) return true;
        if (told[i].load(std::memory_order_acquire) == 0) return false;
        barrier.complete(what.first + i);
        return true;
    }

    bool try_see(unsigned node) {
        const unsigned i = nodes[node].seen;
        if (!complete_some(node, i) || !barrier.is_complete(what.first + i)) return false;
        ++nodes[node].seen;
        for (unsigned other = 0; other < what.nodes; ++other)
            model::check(work[other][i].get() == i + 1, "complete, but somebody has not come");
        if (is_done(node)) model::check(barrier.is_complete(what.first + i), "complete no more");
        return true;
    }

    /// Whoever had to wait goes on, now that everything is visible: nobody may have to wait for ever.
    void finish() {
        for (bool any = true; any;) {
            any = false;
            for (unsigned node = 0; node < what.nodes; ++node)
                while (!is_done(node) && try_step(node)) any = true;
        }
        for (unsigned node = 0; node < what.nodes; ++node) model::check(is_done(node), "waits for ever");
        for (unsigned i = 0; i < what.sequences; ++i)
            model::check(nodes[0].last[i] + nodes[1].last[i] + nodes[2].last[i] == 1, "not exactly one is the last");
        model::check(barrier.completed() == what.first + what.sequences, "more are complete than there were");
    }
};

template <class Memory, std::uint32_t ring>
model::Outcome explore(const Case& what) {
    return model::explore([=]() -> model::Scenario {
        auto host = std::make_shared<Host<Memory, ring>>(what);
        model::Scenario scenario;
        for (unsigned node = 0; node < what.nodes; ++node)
            scenario.threads.push_back([=] {
                while (!host->is_done(node) && host->try_step(node)) {
                }
            });
        scenario.finally = [=] { host->finish(); };
        return scenario;
    });
}

TEST(HostBarrierModel, who_sees_it_complete_sees_what_all_did_and_one_is_the_last) {
    model::expect_proved(explore<model::Memory, 1>({.nodes = 2, .sequences = 3}));
    model::expect_proved(explore<model::Memory, 2>({.nodes = 2, .sequences = 3}));
    model::expect_proved(explore<model::Memory, 2>({.nodes = 2, .sequences = 4}));
    model::expect_proved(explore<model::Memory, 1>({.nodes = 3, .sequences = 2}));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    model::expect_proved(explore<model::Memory, 1>({.nodes = 3, .sequences = 3})); // takes them a minute
#endif
    model::expect_proved(explore<model::Memory, 2>({.nodes = 3, .sequences = 2})); // 3 would take a million executions
}

TEST(HostBarrierModel, barriers_may_be_completed_out_of_order) {
    for (const unsigned sequences : {2u, 3u, 4u})
        model::expect_proved(
            explore<model::Memory, 2>({.nodes = 2, .sequences = sequences, .completing = Completing::late}));
    model::expect_proved(explore<model::Memory, 2>({.nodes = 3, .sequences = 2, .completing = Completing::late}));
}

TEST(HostBarrierModel, another_node_than_the_last_may_complete_them) {
    model::expect_proved(explore<model::Memory, 1>({.nodes = 2, .sequences = 3, .completing = Completing::elsewhere}));
    model::expect_proved(explore<model::Memory, 2>({.nodes = 2, .sequences = 3, .completing = Completing::elsewhere}));
    model::expect_proved(explore<model::Memory, 1>({.nodes = 3, .sequences = 2, .completing = Completing::elsewhere}));
}

TEST(HostBarrierModel, sequences_wrap) {
    model::expect_proved(explore<model::Memory, 2>({.nodes = 2, .sequences = 3, .first = 0u - 1}));
    model::expect_proved(
        explore<model::Memory, 2>({.nodes = 2, .sequences = 2, .completing = Completing::late, .first = 0u - 1}));
    model::expect_proved(
        explore<model::Memory, 2>({.nodes = 2, .sequences = 4, .completing = Completing::late, .first = 0u - 2}));
}

/// The orders of what a barrier does, so that each can be made weaker.
struct Orders {
    std::memory_order addition = std::memory_order_acq_rel;
    std::memory_order exchange = std::memory_order_release;
    std::memory_order acquire = std::memory_order_acquire;
};

template <Orders orders>
struct OrderedMemory : model::Memory {
    template <class T>
    class Atomic {
    public:
        explicit Atomic(T value = {}) : atomic_(value) {}

        T load(std::memory_order order) const {
            return atomic_.load(order == std::memory_order_acquire ? orders.acquire : order);
        }
        void store(T value, std::memory_order order) { atomic_.store(value, order); }
        T fetch_add(T amount, std::memory_order) { return atomic_.fetch_add(amount, orders.addition); }
        bool compare_exchange_strong(T& expected, T desired, std::memory_order, std::memory_order on_failure) {
            return atomic_.compare_exchange_strong(expected, desired, orders.exchange, on_failure);
        }

    private:
        model::Atomic<T> atomic_;
    };
};

template <Orders orders>
model::Outcome explore_with() {
    return explore<OrderedMemory<orders>, 1>({.nodes = 2, .sequences = 2});
}

TEST(HostBarrierModel, the_proof_fails_where_an_order_is_weaker) {
    model::expect_proved(explore_with<Orders{}>());
    EXPECT_TRUE(explore_with<Orders{.addition = std::memory_order_acquire}>().failure);
    EXPECT_TRUE(explore_with<Orders{.addition = std::memory_order_release}>().failure);
    EXPECT_TRUE(explore_with<Orders{.exchange = std::memory_order_relaxed}>().failure);
    EXPECT_TRUE(explore_with<Orders{.acquire = std::memory_order_relaxed}>().failure);
}

TEST(HostBarrier, refuses_who_is_a_ring_ahead_until_the_oldest_is_complete) {
    HostBarrierState<MachineMemory, 2> state;
    HostBarrier<MachineMemory, 2> one(state, 2), other(state, 2);
    EXPECT_EQ(one.arrive(0), Arrival::counted);
    EXPECT_EQ(one.arrive(1), Arrival::counted);
    EXPECT_EQ(one.arrive(2), Arrival::early);
    EXPECT_EQ(other.arrive(0), Arrival::last);
    EXPECT_EQ(one.arrive(2), Arrival::early); // not yet completed
    EXPECT_FALSE(one.is_complete(0));
    other.complete(0);
    EXPECT_TRUE(one.is_complete(0));
    EXPECT_FALSE(one.is_complete(1));
    EXPECT_EQ(one.arrive(2), Arrival::counted);
    EXPECT_EQ(one.arrive(3), Arrival::early);
}

TEST(HostBarrier, completing_an_earlier_one_later_changes_nothing) {
    HostBarrierState<MachineMemory> state;
    HostBarrier<MachineMemory> barrier(state, 1);
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(barrier.arrive(i), Arrival::last);
    barrier.complete(1);
    EXPECT_EQ(barrier.completed(), 2u);
    barrier.complete(0);
    EXPECT_EQ(barrier.completed(), 2u);
    barrier.complete(2);
    barrier.complete(2);
    EXPECT_EQ(barrier.completed(), 3u);
}

TEST(HostBarrier, threads_meet_at_all_of_many_while_sequences_wrap) {
    constexpr std::uint32_t nodes = 3, rounds = 3000, first = 0u - rounds / 2;
    HostBarrierState<MachineMemory, 4> state;
    state.completed.word = first;
    std::vector<std::vector<std::uint32_t>> work(nodes, std::vector<std::uint32_t>(rounds)); // not atomic
    std::atomic<std::uint32_t> lasts{0}, wrong{0};
    const auto run = [&](std::uint32_t node) {
        HostBarrier<MachineMemory, 4> barrier(state, nodes);
        const auto wait_for = [&](std::uint32_t i) {
            while (!barrier.is_complete(first + i)) std::this_thread::yield();
            for (const auto& of_other : work) wrong += of_other[i] != i + 1;
        };
        for (std::uint32_t i = 0; i < rounds; ++i) {
            work[node][i] = i + 1;
            Arrival arrival;
            while ((arrival = barrier.arrive(first + i)) == Arrival::early) std::this_thread::yield();
            if (arrival == Arrival::last) ++lasts, barrier.complete(first + i);
            if (i >= 2) wait_for(i - 2); // some ahead
        }
        wait_for(rounds - 1);
    };
    std::vector<std::thread> threads;
    for (std::uint32_t node = 0; node < nodes; ++node) threads.emplace_back(run, node);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(lasts, rounds);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(state.completed.word, first + rounds);
}

} // namespace
} // namespace kumi::engine
