#pragma once

#include <atomic>
#include <mutex>
#include <sched.h>

namespace kumi::device::composite {

/// A lock that is held for short times and by threads that do not sleep meanwhile: one atomic operation to take it, a
/// plain store to give it back.
class SpinLock {
public:
    bool try_lock() noexcept {
        // Acquire: partner of the store in unlock(). The load first: a failing exchange would take the line away.
        return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire);
    }
    void lock() noexcept {
        constexpr unsigned spins_max = 64; // then the holder may need this core
        for (unsigned spins = 0; !try_lock(); ++spins)
            if (spins >= spins_max) ::sched_yield();
    }
    // Release: partner of the exchange in try_lock().
    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> taken_{false};
};

} // namespace kumi::device::composite
