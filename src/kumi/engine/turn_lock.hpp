#pragma once

// A lock that costs its usual owner nothing. In most programs one thread uses the engine, and the background thread
// takes the turn now and then. So the owner only says "inside" and looks whether somebody visits; a visitor takes the
// lock, says that it visits, and waits until the owner is outside. At least one of them sees the other: the fence that
// this needs is paid by the visitor alone (base/memory_policy.hpp). A second thread that uses the engine often never
// ends its visit: from then on all take the lock.

#include "kumi/base/memory_policy.hpp"

#include <atomic>

namespace kumi::engine {

template <class Memory>
class TurnLock {
public:
    /// False: somebody visits; try_lock().
    bool try_lock_as_owner() noexcept {
        // Relaxed: ordered before the load by the fence.
        inside_.store(true, std::memory_order_relaxed);
        Memory::light_fence(); // partner: heavy_fence() in begin_visit()
        // Acquire: partner of the release in end_visit(): who comes after a visitor sees what it did.
        if (!visited_.load(std::memory_order_acquire)) [[likely]]
            return true;
        inside_.store(false, std::memory_order_release);
        return false;
    }
    /// Release: partner of the acquire in is_owner_outside().
    void unlock_as_owner() noexcept { inside_.store(false, std::memory_order_release); }

    /// For all but the owner, and for the owner while somebody visits.
    bool try_lock() noexcept {
        // Acquire: partner of the release in unlock(). The load first: a failing exchange would take the line away.
        return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire);
    }
    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

    /// With the lock: nobody is the owner for a while. Then wait until is_owner_outside().
    void begin_visit() noexcept {
        visited_.store(true, std::memory_order_relaxed); // ordered by the fence
        Memory::heavy_fence();                           // partner: light_fence() in try_lock_as_owner()
    }
    bool is_owner_outside() const noexcept { return !inside_.load(std::memory_order_acquire); }
    /// Release: partner of the acquire in try_lock_as_owner().
    void end_visit() noexcept { visited_.store(false, std::memory_order_release); }

    /// Before anybody comes: nobody is ever the owner. For systems without heavy_fence().
    void disable() noexcept { visited_.store(true, std::memory_order_relaxed); }

private:
    typename Memory::template Atomic<bool> inside_{false};  // the owner
    typename Memory::template Atomic<bool> visited_{false}; // by others, who have the lock; or for ever
    typename Memory::template Atomic<bool> taken_{false};
};

} // namespace kumi::engine
