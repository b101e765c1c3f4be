#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>

namespace kumi {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Pure code takes the time as an argument; only its drivers ask here.
inline Instant now() noexcept { return std::chrono::steady_clock::now(); }

/// The deadline of a wait without one.
inline constexpr Instant never = Instant::max();

/// How long poll(2) and its like are to wait: 0 when the deadline has passed, -1 when there is none.
inline int milliseconds_until(Instant deadline) noexcept {
    if (deadline == never) return -1;
    const auto left = deadline <= now() ? Duration{0} : deadline - now();
    return static_cast<int>(std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(),
                                                   std::numeric_limits<int>::max()));
}

/// The same for calls with a finer clock, which take no time at all for none.
inline timespec time_until(Instant deadline) noexcept {
    const auto left = deadline <= now() ? Duration{0} : deadline - now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
}

} // namespace kumi
