#pragma once

// One link of a chain of futures: a function that was given to then(), and the promise of what it answers.

#include "kumi/base/result.hpp"
#include "kumi/engine/future/future_state.hpp"

#include <memory>
#include <type_traits>
#include <utility>

namespace kumi {

template <class T>
class Future;
template <class T>
class Promise;

namespace engine {

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

/// The exception that is being handled, as an error: an Error as it is, others with `who` before their text.
Error error_of_exception(const char* who);

/// The way from the library's own templates to the states of futures.
struct FutureAccess {
    /// The state of a future, which has none afterwards. That of a future without an answer is ready with an error.
    template <class T>
    static std::shared_ptr<AnswerState<T>> take(Future<T>& future) {
        auto state = std::exchange(future.state_, nullptr);
        if (!state) (state = std::make_shared<AnswerState<T>>(nullptr))->complete(Future<T>::nothing());
        return state;
    }
    template <class T>
    static const std::shared_ptr<AnswerState<T>>& state_of(const Promise<T>& promise) noexcept {
        return promise.state_;
    }
    template <class T>
    static Promise<T> promise(std::shared_ptr<ProgressLink> link) {
        return Promise<T>(std::move(link));
    }
    /// The answer of `from` becomes that of `to`, and cancelling the future of `to` cancels `from`.
    template <class T>
    static void forward(Future<T> from, Promise<T> to) {
        const auto state = take(from);
        const auto held = std::make_shared<Promise<T>>(std::move(to));
        const bool is_wanted = state_of(*held)->follow(state);
        state->when_ready([held, state] { held->complete(state->take()); });
        if (!is_wanted) FutureState::cancel(state);
    }
};

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
                auto last = function(std::move(answer));
                FutureAccess::forward(std::move(last), std::move(promise));
            } else {
                promise.complete(function(std::move(answer)));
            }
        } catch (...) {
            promise.complete(error_of_exception("what was given to then()"));
        }
    }
};

} // namespace engine
} // namespace kumi
