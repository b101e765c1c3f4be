#pragma once

#include "kumi/base/clock.hpp"

#include <atomic>
#include <cstdint>

namespace kumi::base {

/// Sleeps while `word` is `expected`, until a wake or the deadline; may return early. Works between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Instant deadline) noexcept;

/// Wakes all who sleep on it.
void futex_wake(std::atomic<std::uint32_t>& word) noexcept;

} // namespace kumi::base
