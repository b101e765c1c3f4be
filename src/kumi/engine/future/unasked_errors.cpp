#include "kumi/engine/future/unasked_errors.hpp"

#include "kumi/base/log.hpp"
#include "kumi/base/system/exit_status.hpp"

namespace kumi::engine {

void UnaskedErrors::fail_exit() noexcept {
    const std::lock_guard lock(mutex_);
    fails_exit_ = true;
    if (has_failed_) base::fail_exit();
}

void UnaskedErrors::add(const Error& why, std::string_view remark) noexcept {
    if (why.code() == ErrorCode::cancelled || why.code() == ErrorCode::ended) return;
    const std::lock_guard lock(mutex_);
    if (why.code() != ErrorCode::node_lost && why.code() != ErrorCode::timed_out) {
        has_failed_ = true;
        if (fails_exit_) base::fail_exit();
    }
    if (++count_ > said_max) return;
    base::log_warning("{}{}", why.text(), remark);
}

void UnaskedErrors::say_rest() noexcept {
    const std::lock_guard lock(mutex_);
    if (count_ > said_max) base::log_warning("{} more errors that the program did not ask about", count_ - said_max);
    count_ = 0;
}

} // namespace kumi::engine
