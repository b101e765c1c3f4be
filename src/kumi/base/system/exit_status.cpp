#include "kumi/base/system/exit_status.hpp"

#include <atomic>
#include <cstdlib>

namespace kumi::base {

void fail_exit() noexcept {
    static std::atomic<bool> is_registered{false};
    if (is_registered.exchange(true)) return;
    // In glibc an exit() within such a function goes on with the functions that are left, and with the new status.
    ::on_exit(
        [](int status, void*) {
            if (status == EXIT_SUCCESS) std::exit(EXIT_FAILURE);
        },
        nullptr);
}

} // namespace kumi::base
