#pragma once

// Locks cost most where they are needed least: in a program with one thread. So the first thread that comes needs none,
// until a second comes; that one says so, and waits until the first is outside once. From then on all must lock.
//
// The first thread says "inside" and then looks whether it was revoked; the second revokes and then looks whether the
// first is inside: at least one sees the other. The fence between the two costs the first thread nothing, because the
// second pays for both (base/memory_policy.hpp), once.

#include "kumi/base/memory_policy.hpp"

#include <atomic>

namespace kumi::device::composite {

template <class Memory>
class Bias {
public:
    /// The first thread comes in, perhaps while it is inside already. True: it has everything for itself until leave().
    /// False: it must lock, and does not leave.
    bool enter() noexcept {
        const unsigned depth = depth_.load(std::memory_order_relaxed); // its own
        // Relaxed: ordered before the load below by the fence.
        depth_.store(depth + 1, std::memory_order_relaxed);
        Memory::light_fence(); // partner: heavy_fence() in revoke()
        if (!revoked_.load(std::memory_order_relaxed)) [[likely]] // relaxed: ordered by the fence
            return true;
        leave();
        return false;
    }

    // Release: partner of the acquire in is_inside(): who sees it outside sees all that it did.
    void leave() noexcept { depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

    /// From another thread: the first one has nothing for itself any more, as soon as it is not inside.
    void revoke() noexcept {
        revoked_.store(true, std::memory_order_relaxed); // ordered by the fence
        Memory::heavy_fence();                           // partner: light_fence() in enter()
    }
    bool is_inside() const noexcept { return depth_.load(std::memory_order_acquire) != 0; }

    /// Nobody has ever anything for himself: for systems without heavy_fence(). Before anybody comes.
    void disable() noexcept { revoked_.store(true, std::memory_order_relaxed); }

private:
    typename Memory::template Atomic<unsigned> depth_{0};
    typename Memory::template Atomic<bool> revoked_{false};
};

} // namespace kumi::device::composite
