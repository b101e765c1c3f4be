#include "kumi/base/sync/futex.hpp"

#include <ctime>
#include <limits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kumi::base {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Instant deadline) noexcept {
    timespec until{};
    if (deadline != never) {
        const auto time = deadline.time_since_epoch();
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
        until.tv_sec = seconds.count();
        until.tv_nsec = (time - seconds).count();
    }
    // The bitset form takes an absolute time of the clock that Instant counts.
    ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, deadline == never ? nullptr : &until, nullptr,
              FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

} // namespace kumi::base
