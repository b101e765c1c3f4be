#pragma once

// Sleeping on a word of memory, also of memory that processes share.

#include "kumi/base/clock.hpp"

#include <atomic>
#include <cstdint>

namespace kumi::base {

/// Sleeps while `word` is `expected`, until futex_wake() or the deadline. May return early. Works between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Instant deadline) noexcept;

/// Wakes all threads that sleep on `word`.
void futex_wake(std::atomic<std::uint32_t>& word) noexcept;

} // namespace kumi::base
