#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/sync/futex.hpp"

#include <atomic>
#include <cstdint>

namespace kumi::engine {

/// Naps of one thread, which other threads may end early.
class Naps {
public:
    /// How long the next nap is, or the one that goes on; zero: there is none.
    Duration length() const noexcept { return Duration(length_ns_.load(std::memory_order_relaxed)); } // a hint
    void set_length(Duration length) noexcept { length_ns_.store(length.count(), std::memory_order_relaxed); }
    /// Naps for length(), or until kick(). Does not nap if `is_called()`, which must be true before a kick() for it.
    template <class IsCalled>
    void take(IsCalled&& is_called) noexcept {
        // Sequentially consistent, as in kick(): either kick() sees that the thread naps, or the thread sees the call.
        is_napping_.store(1);
        if (!is_called()) base::futex_wait(is_napping_, 1, now() + length());
        is_napping_.store(0);
    }
    void kick() noexcept {
        if (is_napping_.exchange(0) != 0) base::futex_wake(is_napping_);
    }

private:
    std::atomic<std::uint32_t> is_napping_{0};
    std::atomic<std::int64_t> length_ns_{0};
};

} // namespace kumi::engine
