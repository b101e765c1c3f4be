#include "kumi/base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kumi {

int milliseconds_until(Instant deadline) noexcept {
    if (deadline == never) return -1;
    const auto left = deadline <= now() ? Duration{0} : deadline - now();
    return static_cast<int>(std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(),
                                                   std::numeric_limits<int>::max()));
}

timespec time_until(Instant deadline) noexcept {
    const auto left = deadline <= now() ? Duration{0} : deadline - now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
}

} // namespace kumi
