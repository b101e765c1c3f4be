#include "kumi/base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kumi {

int milliseconds_until(Instant deadline) noexcept {
    if (deadline == never) return -1;
    const Duration left = std::max<Duration>(deadline - now(), Duration{0});
    return static_cast<int>(std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(),
                                                   std::numeric_limits<int>::max()));
}

Instant now_coarse() noexcept {
    timespec tick{}; // the last one
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
    return Instant(std::chrono::seconds(tick.tv_sec) + std::chrono::nanoseconds(tick.tv_nsec)) + coarse_ahead_max;
}

timespec time_until(Instant deadline) noexcept {
    const Duration left = std::max<Duration>(deadline - now(), Duration{0});
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
}

} // namespace kumi
