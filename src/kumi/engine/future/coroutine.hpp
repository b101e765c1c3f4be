#pragma once

// Coroutines whose return type is Future<T>, and co_await of a future, which gives its Result<T>.
//
//     kumi::Future<int> sum(kumi::Job& job, kumi::Function<int(int)> function) {
//         auto first = job.invoke(1, function, 5), second = job.invoke(2, function, 5);
//         const auto a = co_await first, b = co_await second;   // both are under way
//         if (!a) co_return a.error();
//         if (!b) co_return b.error();
//         co_return *a + *b;
//     }
//
// A coroutine runs in its caller until the first co_await of a future that is not ready. What follows is a continuation
// (engine/future.hpp): it runs on the thread that completes the awaited future, and must co_await instead of waiting.
// What a coroutine throws becomes the error of its future; an Error that it throws is that error. Cancelling the future
// cancels what the coroutine awaits: the coroutine goes on with that error. References that a coroutine takes must stay
// valid until its future is ready; those to arguments of a function that other nodes call do not.
//
// g++ 12 compiles a co_await within a condition wrongly, whatever is awaited: name its value first, as above.

#include "kumi/engine/future.hpp"

#include <coroutine>
#include <memory>
#include <optional>
#include <utility>

namespace kumi {
namespace engine {

/// What a coroutine makes its future by.
template <class T>
class CoroutineOf {
public:
    Future<T> get_return_object() { return promise_.future(); }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    void unhandled_exception() { answer_.emplace(error_of_exception("a coroutine")); }
    /// What the coroutine waits for now.
    void awaits(const std::shared_ptr<FutureState>& state) {
        is_wanted_ = FutureAccess::state_of(promise_)->follow(state);
    }
    bool is_wanted() const noexcept { return is_wanted_; }

    /// Gives the answer when all that the coroutine held is destroyed.
    struct Finish {
        bool await_ready() const noexcept { return false; }
        template <class Coroutine>
        void await_suspend(std::coroutine_handle<Coroutine> coroutine) const noexcept {
            Promise<T> promise = std::move(coroutine.promise().promise_);
            Result<T> answer = *std::move(coroutine.promise().answer_);
            coroutine.destroy();
            promise.complete(std::move(answer));
        }
        void await_resume() const noexcept {}
    };
    Finish final_suspend() const noexcept { return {}; }

protected:
    Promise<T> promise_;
    std::optional<Result<T>> answer_;
    bool is_wanted_ = true;
};

template <class T>
class CoroutinePromise final : public CoroutineOf<T> {
public:
    /// `co_return value;` or `co_return error;`
    void return_value(Result<T> answer) { this->answer_.emplace(std::move(answer)); }
};

template <>
class CoroutinePromise<void> final : public CoroutineOf<void> {
public:
    void return_void() { answer_.emplace(); }
};

/// A coroutine waits for a future without keeping its thread.
template <class T>
class Awaiter {
public:
    explicit Awaiter(std::shared_ptr<AnswerState<T>> state) noexcept : state_(std::move(state)) {}

    bool await_ready() const noexcept { return state_->is_ready(); }
    template <class Coroutine>
    void await_suspend(std::coroutine_handle<Coroutine> coroutine) {
        // The coroutine may go on, and end, on another thread before when_ready() returns: this keeps what is used.
        const auto state = state_;
        bool is_wanted = true;
        if constexpr (requires { coroutine.promise().awaits(state); }) {
            coroutine.promise().awaits(state);
            is_wanted = coroutine.promise().is_wanted();
        }
        state->when_ready([coroutine] { coroutine.resume(); });
        if (!is_wanted) FutureState::cancel(state);
    }
    Result<T> await_resume() { return state_->take(); }

private:
    std::shared_ptr<AnswerState<T>> state_;
};

} // namespace engine

/// The future has no answer afterwards: its answer is the value of co_await.
template <class T>
engine::Awaiter<T> operator co_await(Future<T>& future) {
    return engine::Awaiter<T>(engine::FutureAccess::take(future));
}
template <class T>
engine::Awaiter<T> operator co_await(Future<T>&& future) {
    return engine::Awaiter<T>(engine::FutureAccess::take(future));
}

} // namespace kumi

template <class T, class... Arguments>
struct std::coroutine_traits<kumi::Future<T>, Arguments...> {
    using promise_type = kumi::engine::CoroutinePromise<T>;
};
