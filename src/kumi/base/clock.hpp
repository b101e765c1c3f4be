#pragma once

#include <chrono>

namespace kumi {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Pure code takes the time as an argument; only its drivers ask here.
inline Instant now() noexcept { return std::chrono::steady_clock::now(); }

/// The deadline of a wait without one.
inline constexpr Instant never = Instant::max();

} // namespace kumi
