#pragma once

// A small number for the calling thread, which can travel in messages.

#include <atomic>
#include <cstdint>

namespace kumi::base {

/// A number of the calling thread, from 1. No other thread of this process ever has it, until there were 2^28 threads.
inline std::uint32_t thread_number() noexcept {
    static std::atomic<std::uint32_t> last{0};
    static thread_local std::uint32_t number = 0;
    if (number == 0) [[unlikely]]
        number = (last.fetch_add(1, std::memory_order_relaxed) + 1) & 0x0FFFFFFF; // no partner: a counter
    return number;
}

} // namespace kumi::base
