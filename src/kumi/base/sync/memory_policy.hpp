#pragma once

// The memory policy of lock-free code. Such code is a template over it: with MachineMemory it runs on the machine, and
// with kumi::model::Memory (tests/model) a model checker runs every execution that the C++ memory model allows.

#include <atomic>

namespace kumi::base {

struct MachineMemory {
    template <class T>
    using Atomic = std::atomic<T>;

    /// A sequentially consistent fence: all stores before it are visible to all threads before any access after it.
    static void full_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
        // ThreadSanitizer does not understand fences, but this.
        static std::atomic<int> total_order{0};
        total_order.fetch_add(1, std::memory_order_seq_cst);
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    }

    /// The cheap half of an asymmetric pair: it orders the compiler only. heavy_fence(), its partner, orders the
    /// machine.
    static void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

    /// A full fence in this thread and, at some point during the call, in every thread of every process that has called
    /// register_for_heavy_fence(). Costs a system call, and an interrupt of each busy core.
    static void heavy_fence() noexcept;
};

/// Makes this process take part in the heavy_fence() of other processes. False where the system has no such call; then
/// both halves of a pair must use full_fence().
bool register_for_heavy_fence() noexcept;

} // namespace kumi::base
