#include "kumi/engine/future/future_state.hpp"

#include "kumi/base/sync/futex.hpp"
#include "kumi/engine/future/continuations.hpp"
#include "kumi/engine/progress/progress.hpp"

namespace kumi::engine {
namespace {

Error no_answer_yet() {
    return Error(ErrorCode::timed_out, "there is no answer yet, and the deadline has passed");
}
Error job_ended() { return Error(ErrorCode::ended, "there is no answer: the job has ended"); }

} // namespace

// ---- waiting

Result<void> FutureState::wait(Instant deadline) {
    if (is_ready()) return {};
    if (in_continuation())
        return error(ErrorCode::misuse,
                     "a continuation must not wait for an answer: return the future, or co_await it");
    if (link_) return wait_with(*link_, deadline);
    std::shared_ptr<ProgressLink> adopted;
    {
        const std::lock_guard lock(mutex_);
        if (!adopted_) adopted_ = ProgressLink::current();
        adopted = adopted_;
        if (!adopted) is_waited_for_alone_ = true;
    }
    return adopted ? wait_with(*adopted, deadline) : wait_alone(deadline);
}

Result<void> FutureState::wait_with(ProgressLink& link, Instant deadline) {
    const ProgressLink::Use progress(link);
    if (progress) {
        if (progress->in_handler())
            return error(ErrorCode::misuse,
                         "a handler must not wait for an answer: give then() what is to be done with it");
        progress->wait_until([&] { return is_ready() || link.has_ended(); }, deadline,
                             "a future: there is no answer yet");
    }
    if (is_ready()) return {};
    return link.has_ended() ? job_ended() : no_answer_yet();
}

Result<void> FutureState::wait_alone(Instant deadline) {
    while (!is_ready()) {
        if (now() >= deadline) return no_answer_yet();
        base::futex_wait(ready_, 0, deadline);
    }
    return {};
}

// ---- completing

void FutureState::when_ready(std::function<void()> call) {
    {
        const std::lock_guard lock(mutex_);
        if (!is_ready()) {
            KUMI_ASSERT(!call_);
            call_ = std::move(call);
            return;
        }
    }
    run_continuation(std::move(call));
}

bool FutureState::complete(base::FunctionRef<void()> store) {
    std::unique_lock lock(mutex_);
    if (std::exchange(is_claimed_, true)) return false;
    publish(lock, store);
    return true;
}

void FutureState::drop() {
    if (is_ready()) return;
    complete([this] {
        store_error(link_ && link_->has_ended()
                        ? job_ended()
                        : Error(ErrorCode::cancelled, "there is no answer: the promise was destroyed without one"));
    });
}

void FutureState::note_unasked(const Error& why) noexcept {
    ProgressLink* const link = link_ ? link_.get() : adopted_.get();
    if (link != nullptr && !may_be_dropped_) link->unasked().add(why);
}

namespace {

/// Takes the turn back that was lent to a continuation, which may throw if there is no memory.
struct Reclaiming {
    Progress* lender; // or null
    ~Reclaiming() {
        if (lender != nullptr) lender->reclaim();
    }
};

} // namespace

void FutureState::publish(std::unique_lock<std::mutex>& lock, base::FunctionRef<void()> store) {
    store();
    std::function<void()> call = std::exchange(call_, nullptr);
    source_.reset();
    more_sources_.clear();
    ProgressLink* const link = link_ ? link_.get() : adopted_.get();
    const bool is_waited_for_alone = is_waited_for_alone_;
    // Release: partner of the acquire in is_ready().
    ready_.store(1, std::memory_order_release);
    lock.unlock();
    Progress* lender = nullptr;
    if (link != nullptr) {
        const ProgressLink::Use progress(*link);
        // Threads that wait look again after every handler by themselves.
        if (progress && !progress->in_handler()) progress->wake();
        // The engine does not end while this thread has lent the turn.
        if (progress && call && progress->lend()) lender = progress.operator->();
    }
    if (is_waited_for_alone) base::futex_wake(ready_);
    const Reclaiming reclaiming{lender};
    if (call) run_continuation(std::move(call));
}

// ---- cancelling

bool FutureState::follow(const std::shared_ptr<FutureState>& source) {
    const std::lock_guard lock(mutex_);
    if (is_claimed_) return false;
    source_ = source;
    more_sources_.clear();
    return true;
}

bool FutureState::follow_also(const std::shared_ptr<FutureState>& source) {
    const std::lock_guard lock(mutex_);
    if (is_claimed_) return false;
    more_sources_.push_back(source);
    return true;
}

bool FutureState::claim() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(is_claimed_, true);
}

void FutureState::forget_asked() {
    if (!asked_ || !link_) return;
    const ProgressLink::Use progress(*link_);
    if (progress) progress->forget(*asked_);
}

void FutureState::cancel(std::shared_ptr<FutureState> state) {
    // All are claimed before any is published: a thread that sees one of them cancelled may rely on all being
    // forgotten by the engine.
    std::vector<std::shared_ptr<FutureState>> claimed;
    const auto claim_one = [&](std::shared_ptr<FutureState> one) {
        if (one && one->claim()) claimed.push_back(std::move(one));
    };
    claim_one(std::move(state));
    for (std::size_t i = 0; i < claimed.size(); ++i) {
        // The sources do not change any more, because the state is claimed.
        claim_one(claimed[i]->source_.lock());
        for (std::size_t k = 0; k < claimed[i]->more_sources_.size(); ++k)
            claim_one(claimed[i]->more_sources_[k].lock());
        claimed[i]->forget_asked();
    }
    for (const std::shared_ptr<FutureState>& one : claimed) {
        std::unique_lock lock(one->mutex_);
        one->publish(lock, [&] {
            one->store_error(Error(ErrorCode::cancelled, "cancelled: the answer was not wanted any more"));
        });
    }
}

} // namespace kumi::engine
