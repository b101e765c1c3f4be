#pragma once

// Lock-free code here is written over a memory policy: with this one it runs on the machine, with
// kumi::model::Memory (tests/model) a model checker runs every execution that the C++ memory model allows.

#include <atomic>

namespace kumi::base {

struct MachineMemory {
    template <class T>
    using Atomic = std::atomic<T>;

    /// Everything before it is visible to everybody before anything after it is done.
    static void full_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
        // ThreadSanitizer does not follow fences; it follows this.
        static std::atomic<int> total_order{0};
        total_order.fetch_add(1, std::memory_order_seq_cst);
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    }

    /// The cheap half of an asymmetric pair: holds the compiler only; its partner's heavy_fence() holds the machine.
    static void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

    /// A full fence here and, at some point during the call, on every thread of every process that called
    /// register_for_heavy_fence(). Costs a system call and an interrupt per busy core.
    static void heavy_fence() noexcept;
};

/// Makes this process take part in other processes' heavy_fence(). False where the system has no such call:
/// then both halves of a pair must use full_fence().
bool register_for_heavy_fence() noexcept;

} // namespace kumi::base
