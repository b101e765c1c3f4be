#include "kumi/engine/future.hpp"

#include "kumi/engine/progress/progress.hpp"

namespace kumi::engine {

Result<void> FutureState::wait(Instant deadline) {
    if (is_ready()) return {};
    KUMI_ASSERT(progress_ != nullptr);
    if (progress_->in_handler())
        return error(ErrorCode::misuse,
                     "a handler must not wait for an answer: give then() what is to be done with it");
    if (progress_->wait_until([this] { return is_ready(); }, deadline) || is_ready()) return {};
    return error(ErrorCode::timed_out, "there is no answer yet, and the deadline has passed");
}

void FutureState::when_ready(std::function<void()> call) {
    {
        const std::lock_guard lock(mutex_);
        if (!is_ready()) {
            KUMI_ASSERT(!call_);
            call_ = std::move(call);
            return;
        }
    }
    call();
}

bool FutureState::complete(base::FunctionRef<void()> store) {
    // Who waits looks again after every handler by himself.
    const bool wakes = progress_ != nullptr && !progress_->in_handler();
    std::function<void()> call;
    {
        const std::lock_guard lock(mutex_);
        if (is_ready()) return false;
        store();
        call.swap(call_);
        // Release: partner of the acquire in is_ready().
        is_ready_.store(true, std::memory_order_release);
    }
    if (wakes) progress_->wake();
    if (call) call();
    return true;
}

bool FutureState::cancel(base::FunctionRef<void()> store) {
    if (!complete(store)) return false;
    if (asked_) progress_->forget(*asked_);
    return true;
}

} // namespace kumi::engine
