#pragma once

// Points in time and durations as Kumi uses them. Include it to give deadlines to calls that wait.

#include <ctime>
#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h> // libstdc++: without calendars and streams, which take the compiler a tenth of a second
#else
#include <chrono>
#endif

namespace kumi {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// The time of the steady clock. Protocol code does not call it but takes the time as an argument, so that tests can
/// replay any schedule.
inline Instant now() noexcept { return std::chrono::steady_clock::now(); }

/// A time between now() and coarse_ahead_max after it, or earlier where the system has missed a tick. Takes a third of
/// the time of now(). For deadlines in tenths of seconds that are checked before each sleep.
Instant now_coarse() noexcept;
inline constexpr Duration coarse_ahead_max = std::chrono::milliseconds(10); // the longest tick of a system

/// The deadline of a wait that has none.
inline constexpr Instant never = Instant::max();

/// The timeout for poll(2) and similar calls: 0 when the deadline has passed, -1 when there is none.
int milliseconds_until(Instant deadline) noexcept;

/// The timeout for calls that take a timespec. Such calls take a null pointer for `never`, so `deadline` is not
/// `never`.
timespec time_until(Instant deadline) noexcept;

} // namespace kumi
