#pragma once

// What a future and its promise share. The answer is stored once: the first of complete() and cancel() claims the
// state, and the others do nothing.

#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/future/progress_link.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kumi::engine {

/// All of it but the answer, whose type it does not know.
class FutureState {
public:
    /// `link` may be null: get() then makes progress for the job that the waiting thread means, if there is one.
    explicit FutureState(std::shared_ptr<ProgressLink> link) noexcept : link_(std::move(link)) {}
    FutureState(const FutureState&) = delete;
    FutureState& operator=(const FutureState&) = delete;

    const std::shared_ptr<ProgressLink>& link() const noexcept { return link_; }
    bool is_ready() const noexcept {
        // Acquire: partner of the release in publish(): a thread that sees the state ready sees the answer.
        return ready_.load(std::memory_order_acquire) != 0;
    }
    /// An error: the deadline has passed, the job has ended, or this thread must not wait.
    Result<void> wait(Instant deadline);
    /// Runs `call` once, as a continuation: now if ready, otherwise on the thread that makes this ready. Only once.
    void when_ready(std::function<void()> call);

    /// Sets the engine's number for what was asked, for forgetting it on cancel(). Requires that no thread can cancel
    /// yet.
    void set_asked(std::uint64_t asked) noexcept { asked_ = asked; }
    /// From now on cancelling this cancels `source`, instead of the earlier sources. False: this is claimed already.
    bool follow(const std::shared_ptr<FutureState>& source);
    /// The same, besides the earlier sources.
    bool follow_also(const std::shared_ptr<FutureState>& source);
    /// Cancels `state` and what it follows, unless they are claimed. When this returns, the engine has forgotten what
    /// was asked, and stores nothing for it any more.
    static void cancel(std::shared_ptr<FutureState> state);
    /// An error of this state is not told to the user if the program drops the future.
    void allow_dropping() noexcept { may_be_dropped_ = true; }
    /// The promise is destroyed: unless there is an answer, it is the error that there will be none.
    void drop();

protected:
    ~FutureState() = default;
    /// `store` puts the answer in its place. False: claimed before, and nothing was stored.
    bool complete(base::FunctionRef<void()> store);
    virtual void store_error(Error why) = 0;
    /// The program has dropped the future without asking: the user is told when the job ends.
    void note_unasked(const Error& why) noexcept;

    std::mutex mutex_; // guards the answer too, until it is there

private:
    Result<void> wait_with(ProgressLink& link, Instant deadline);
    Result<void> wait_alone(Instant deadline);
    bool claim();
    void forget_asked();
    /// The state is claimed, and `lock` holds the mutex.
    void publish(std::unique_lock<std::mutex>& lock, base::FunctionRef<void()> store);

    const std::shared_ptr<ProgressLink> link_;
    std::optional<std::uint64_t> asked_;
    bool may_be_dropped_ = false;
    std::atomic<std::uint32_t> ready_{0}; // 1: there is an answer. A thread without a job sleeps on this word.

    // Guarded by the mutex.
    bool is_claimed_ = false;
    bool is_waited_for_alone_ = false;
    std::shared_ptr<ProgressLink> adopted_; // of a thread that waits, if there is no link; set once
    std::function<void()> call_;
    std::weak_ptr<FutureState> source_;
    std::vector<std::weak_ptr<FutureState>> more_sources_;
};

template <class T>
class AnswerState final : public FutureState {
public:
    using FutureState::FutureState;
    ~AnswerState() {
        // Relaxed: nobody else has this any more.
        if (answer_ && !*answer_ && !was_taken_.load(std::memory_order_relaxed)) note_unasked(answer_->error());
    }

    bool complete(Result<T> answer) {
        return FutureState::complete([&] { answer_.emplace(std::move(answer)); });
    }
    /// The answer, for the first caller. Requires that this is ready.
    Result<T> take() {
        // Relaxed: the answer does not change any more, and the caller has seen that it is there.
        if (was_taken_.exchange(true, std::memory_order_relaxed))
            return Error(ErrorCode::misuse, "the answer was taken before: a future gives it once");
        return *std::move(answer_);
    }

private:
    void store_error(Error why) override { answer_.emplace(std::move(why)); }

    std::optional<Result<T>> answer_;
    std::atomic<bool> was_taken_{false};
};

} // namespace kumi::engine
