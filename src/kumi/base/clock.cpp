#include "kumi/base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kumi {
namespace {

/// Not a difference alone: it would overflow for the first instant that there is, which stands for "not at all".
Duration left_until(Instant deadline) noexcept {
    const Instant time = now();
    return deadline <= time ? Duration{0} : deadline - time;
}

} // namespace

int milliseconds_until(Instant deadline) noexcept {
    if (deadline == never) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(left_until(deadline));
    return static_cast<int>(std::min<std::int64_t>(left.count(), std::numeric_limits<int>::max()));
}

Instant now_coarse() noexcept {
    timespec tick{}; // the last one
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
    return Instant(std::chrono::seconds(tick.tv_sec) + std::chrono::nanoseconds(tick.tv_nsec)) + coarse_ahead_max;
}

timespec time_until(Instant deadline) noexcept {
    const Duration left = left_until(deadline);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
}

} // namespace kumi
