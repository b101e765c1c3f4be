#pragma once

// A lock that costs its usual owner no atomic read-modify-write operation. In most programs one thread uses a resource
// and others come seldom or never. So the owner only marks itself inside and looks whether another thread visits. A
// visitor announces its visit and then waits until the owner is outside. At least one of the two sees the other,
// because there is a fence between the store and the load on both sides. The visitor pays for both fences
// (base/sync/memory_policy.hpp).
//
// What one of the two did inside must be visible to the other. Either the owner pays for that: it releases when it
// leaves and acquires when it enters, which delays it by some nanoseconds on aarch64. Or visitors pay, by two more
// fences for each visit, and the owner only stores and loads: for owners that come and go all the time.
//
// Visitors exclude each other, and the owner while it is refused, by try_lock().

#include "kumi/base/sync/memory_policy.hpp"

#include <atomic>

namespace kumi::base {

enum class Ordered { by_owner, by_visitor };

template <class Memory, Ordered ordered = Ordered::by_owner>
class BiasedLock {
public:
    /// For the owner, which must be outside. False: there is a visit, and the owner must lock as visitors do.
    [[gnu::always_inline]] bool try_lock_as_owner() noexcept {
        // Relaxed: ordered before the load by the fence.
        inside_.store(true, std::memory_order_relaxed);
        Memory::light_fence(); // partner: heavy_fence() in begin_visit()
        // By owner: partner of the release in end_visit(). By visitor: of the heavy_fence() there.
        const bool is_visited = visited_.load(entering_as_owner);
        Memory::light_fence();
        if (!is_visited) [[likely]]
            return true;
        unlock_as_owner();
        return false;
    }
    /// By owner: partner of the acquire in is_owner_outside(), so that a visitor sees what the owner did. By visitor:
    /// of the heavy_fence() there.
    [[gnu::always_inline]] void unlock_as_owner() noexcept {
        Memory::light_fence();
        inside_.store(false, leaving_as_owner);
    }

    /// For visitors, and for the owner while there is a visit. `looking` and `leaving` are seq_cst where threads leave
    /// errands (errand_list.hpp).
    bool try_lock(std::memory_order looking = std::memory_order_relaxed) noexcept {
        // Acquire: partner of the release in unlock(). The load comes first because a failing exchange would take the
        // cache line away from the thread that has the lock.
        return !taken_.load(looking) && !taken_.exchange(true, std::memory_order_acquire);
    }
    void unlock(std::memory_order leaving = std::memory_order_release) noexcept { taken_.store(false, leaving); }
    /// A hint.
    bool seems_taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

    /// Refuses the owner from now on. The visitor must then wait for is_owner_outside().
    void begin_visit() noexcept {
        visited_.store(true, std::memory_order_relaxed); // ordered by the fence
        Memory::heavy_fence();                           // partner: light_fence() in try_lock_as_owner()
    }
    bool is_owner_outside() const noexcept {
        if (inside_.load(std::memory_order_acquire)) return false;
        // The owner stored that it is outside, and now everything that it stored before.
        if (ordered == Ordered::by_visitor) Memory::heavy_fence(); // partner: light_fence() in unlock_as_owner()
        return true;
    }
    /// For an owner that is refused for ever: it has the lock by try_lock(), and counts as inside until
    /// unlock_as_owner().
    void mark_inside() noexcept { inside_.store(true, std::memory_order_relaxed); }
    /// For the owner, exact. For others a hint, without a fence.
    bool seems_owner_outside() const noexcept { return !inside_.load(std::memory_order_relaxed); }
    /// Release: partner of the acquire in try_lock_as_owner(), so that the owner sees what the visitor did.
    void end_visit() noexcept {
        if (ordered == Ordered::by_visitor) Memory::heavy_fence(); // partner: light_fence() in try_lock_as_owner()
        visited_.store(false, std::memory_order_release);
    }

    /// Refuses the owner for ever, for systems without heavy_fence(). Must come before all other calls.
    void disable() noexcept { visited_.store(true, std::memory_order_relaxed); }

private:
    static constexpr auto entering_as_owner =
        ordered == Ordered::by_owner ? std::memory_order_acquire : std::memory_order_relaxed;
    static constexpr auto leaving_as_owner =
        ordered == Ordered::by_owner ? std::memory_order_release : std::memory_order_relaxed;

    typename Memory::template Atomic<bool> inside_{false};  // the owner is inside
    typename Memory::template Atomic<bool> visited_{false}; // set by a visitor, or for ever by disable()
    typename Memory::template Atomic<bool> taken_{false};   // by try_lock()
};

} // namespace kumi::base
