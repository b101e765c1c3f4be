#pragma once

// An answer that is still to come. It is complete exactly once: by who answers, by cancel(), or because nobody is left
// who could answer; the first of these counts and the others do nothing.

#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace kumi {

template <class T>
class Future;

namespace engine {

class Progress;

/// What a future shares with who completes it, but for the answer itself.
class FutureState {
public:
    /// Without progress it must be complete before anybody waits.
    explicit FutureState(Progress* progress) noexcept : progress_(progress) {}
    FutureState(const FutureState&) = delete;
    FutureState& operator=(const FutureState&) = delete;

    Progress* progress() const noexcept { return progress_; }
    bool is_ready() const noexcept {
        // Acquire: partner of the release in complete(): who sees it ready sees the answer.
        return is_ready_.load(std::memory_order_acquire);
    }
    Result<void> wait(Instant deadline);
    /// Calls it once: now if ready, otherwise by who completes this. For one caller.
    void when_ready(std::function<void()> call);
    /// The engine's number for what was asked, to be forgotten when the answer is not wanted. Before anybody can
    /// cancel.
    void set_asked(std::uint64_t asked) noexcept { asked_ = asked; }

protected:
    ~FutureState() = default;
    /// `store` puts the answer in its place. False: complete before, and nothing was stored.
    bool complete(base::FunctionRef<void()> store);
    bool cancel(base::FunctionRef<void()> store);

    std::mutex mutex_; // guards the answer too

private:
    Progress* const progress_;
    std::optional<std::uint64_t> asked_;
    std::atomic<bool> is_ready_{false};
    std::function<void()> call_;
};

template <class T>
class AnswerState final : public FutureState {
public:
    using FutureState::FutureState;

    bool complete(Result<T> answer) {
        return FutureState::complete([&] { answer_.emplace(std::move(answer)); });
    }
    void cancel() {
        FutureState::cancel(
            [&] { answer_.emplace(Error(ErrorCode::cancelled, "cancelled: the answer was not wanted any more")); });
    }
    /// The answer, for the first who comes. It must be ready.
    Result<T> take() {
        const std::lock_guard lock(mutex_);
        if (std::exchange(was_taken_, true)) return Error(ErrorCode::misuse, "the answer was taken before");
        return *std::move(answer_);
    }

private:
    std::optional<Result<T>> answer_;
    bool was_taken_ = false;
};

/// The side that completes a future. Destroyed before it did, it says that there will be no answer; so the engine,
/// which this may wake, lets go of those it has before it ends, and no future of its waits for ever.
template <class T>
class Promise {
public:
    explicit Promise(Progress* progress) : state_(std::make_shared<AnswerState<T>>(progress)) {}
    Promise(Promise&&) noexcept = default;
    Promise& operator=(Promise&&) = delete;
    ~Promise() {
        if (state_ && !state_->is_ready()) complete(Error(ErrorCode::ended, "there is no answer: the job has ended"));
    }

    Future<T> future() const { return Future<T>(state_); }
    bool is_ready() const noexcept { return state_->is_ready(); }
    void set_asked(std::uint64_t asked) noexcept { state_->set_asked(asked); }
    /// Runs what the future's user has given to then(). False: nobody wants the answer any more.
    bool complete(Result<T> answer) { return state_->complete(std::move(answer)); }

private:
    std::shared_ptr<AnswerState<T>> state_;
};

/// What a future of this holds: a Result's or a Future's value is not wrapped twice.
template <class Answer>
struct future_value {
    using type = Answer;
};
template <class T>
struct future_value<Result<T>> {
    using type = T;
};
template <class T>
struct future_value<Future<T>> {
    using type = T;
};

/// A function that waits for an answer, and the promise of its own.
template <class Function, class T>
struct Step {
    using Answer = std::remove_cvref_t<std::invoke_result_t<Function&, Result<T>>>;
    using Value = typename future_value<Answer>::type;

    Function function;
    Promise<Value> promise;

    void run(Result<T> answer) {
        if (promise.is_ready()) return; // cancelled meanwhile
        try {
            if constexpr (std::is_void_v<Answer>) {
                function(std::move(answer));
                promise.complete({});
            } else if constexpr (std::is_same_v<Answer, Future<Value>>) {
                function(std::move(answer)).then([own = std::move(promise)](Result<Value> last) mutable {
                    own.complete(std::move(last));
                });
            } else {
                promise.complete(function(std::move(answer)));
            }
        } catch (const std::exception& thrown) {
            promise.complete(
                Error(ErrorCode::refused, std::string("what was given to then() threw: ") + thrown.what()));
        } catch (...) {
            promise.complete(
                Error(ErrorCode::refused, "what was given to then() threw something that is no std::exception"));
        }
    }
};

} // namespace engine

/// An answer that is still to come; T may be void. For any thread, but for one at a time: only is_ready() and cancel()
/// may be called while another thread waits in get(). Destroying it neither waits nor cancels. One that was moved from,
/// or whose answer then() took, is ready with an error.
template <class T>
class Future {
public:
    Future() = default;
    Future(Future&&) noexcept = default;
    Future& operator=(Future&&) noexcept = default;

    /// get() would not wait.
    bool is_ready() const noexcept { return !state_ || state_->is_ready(); }

    /// Waits for the answer and takes it: once. An error says what went wrong and on which node. When the deadline
    /// comes first, or this is called in a handler before it is ready, that is the error and the future can still be
    /// used.
    Result<T> get(Instant deadline = never) {
        if (!state_) return nothing();
        if (auto waited = state_->wait(deadline); !waited) return waited.error();
        return state_->take();
    }

    /// Gives the answer, as a Result<T>, to `function`: at once if ready, otherwise on the thread that makes progress,
    /// as in a handler. It must not wait. What it answers (a value, a Result or another Future) comes to the future
    /// that this returns; so does what it throws. When that one is cancelled first, the function is not called.
    template <class Function>
    auto then(Function function) {
        using Step = engine::Step<Function, T>;
        auto state = std::exchange(state_, nullptr);
        if (!state) (state = std::make_shared<engine::AnswerState<T>>(nullptr))->complete(nothing());
        const auto step =
            std::make_shared<Step>(Step{std::move(function), engine::Promise<typename Step::Value>(state->progress())});
        auto future = step->promise.future();
        state->when_ready([step, from = state.get()] { step->run(from->take()); });
        return future;
    }

    /// The answer is not wanted any more: get() says so, unless it is ready already. The function may still run there.
    void cancel() {
        if (state_) state_->cancel();
    }

private:
    friend class engine::Promise<T>;
    explicit Future(std::shared_ptr<engine::AnswerState<T>> state) noexcept : state_(std::move(state)) {}
    static Error nothing() {
        return Error(ErrorCode::misuse, "this future has no answer: it was moved from, or then() took it");
    }

    std::shared_ptr<engine::AnswerState<T>> state_;
};

} // namespace kumi
