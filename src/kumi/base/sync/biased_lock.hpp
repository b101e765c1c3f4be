#pragma once

// A lock that costs its usual owner no atomic read-modify-write operation. In most programs one thread uses a resource
// and others come seldom or never. So the owner only marks itself inside and looks whether another thread visits. A
// visitor announces its visit and then waits until the owner is outside. At least one of the two sees the other,
// because there is a fence between the store and the load on both sides. The visitor pays for both fences
// (base/sync/memory_policy.hpp).
//
// Visitors must exclude each other, and the owner while it is refused: with try_lock(), or with finer locks of the
// caller's.

#include "kumi/base/sync/memory_policy.hpp"

#include <atomic>

namespace kumi::base {

/// Whether the owner can have the lock for itself again after a visit.
enum class Visits {
    may_end,  // end_visit() gives the lock back to the owner
    never_end // the first visit is for ever; the owner then needs no acquire to see what visitors did
};

template <class Memory, Visits visits>
class BiasedLock {
public:
    /// For the owner, which must be outside. False: there is a visit, and the owner must lock as visitors do.
    bool try_lock_as_owner() noexcept { return try_enter(0); }
    /// Release: partner of the acquire in is_owner_outside(), so that a visitor sees what the owner did.
    void unlock_as_owner() noexcept { inside_.store(0, std::memory_order_release); }

    /// The same for an owner that may be inside already. Each success takes one unlock_as_owner_once().
    bool try_lock_as_owner_again() noexcept {
        return try_enter(inside_.load(std::memory_order_relaxed)); // relaxed: only the owner writes it
    }
    /// Orders as unlock_as_owner() does.
    void unlock_as_owner_once() noexcept {
        inside_.store(inside_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }

    /// For visitors, and for the owner while there is a visit.
    bool try_lock() noexcept {
        // Acquire: partner of the release in unlock(). The load comes first because a failing exchange would take the
        // cache line away from the thread that has the lock.
        return !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire);
    }
    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

    /// Refuses the owner from now on. The visitor must then wait for is_owner_outside().
    void begin_visit() noexcept {
        visited_.store(true, std::memory_order_relaxed); // ordered by the fence
        Memory::heavy_fence();                           // partner: light_fence() in try_enter()
    }
    bool is_owner_outside() const noexcept { return inside_.load(std::memory_order_acquire) == 0; }
    /// Release: partner of the acquire in try_enter(), so that the owner sees what the visitor did.
    void end_visit() noexcept
        requires(visits == Visits::may_end)
    {
        visited_.store(false, std::memory_order_release);
    }

    /// Refuses the owner for ever, for systems without heavy_fence(). Must come before all other calls.
    void disable() noexcept { visited_.store(true, std::memory_order_relaxed); }

private:
    static constexpr std::memory_order after_visits =
        visits == Visits::may_end ? std::memory_order_acquire : std::memory_order_relaxed;

    bool try_enter(unsigned depth) noexcept {
        // Relaxed: ordered before the load by the fence.
        inside_.store(depth + 1, std::memory_order_relaxed);
        Memory::light_fence(); // partner: heavy_fence() in begin_visit()
        // Acquire: partner of the release in end_visit(). Relaxed where visits do not end: ordered by the fence.
        if (!visited_.load(after_visits)) [[likely]]
            return true;
        inside_.store(depth, std::memory_order_release); // as unlock_as_owner()
        return false;
    }

    typename Memory::template Atomic<unsigned> inside_{0};  // how many times the owner is inside
    typename Memory::template Atomic<bool> visited_{false}; // set by a visitor, or for ever by disable()
    typename Memory::template Atomic<bool> taken_{false};   // by try_lock()
};

} // namespace kumi::base
