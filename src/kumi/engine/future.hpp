#pragma once

// Answers that are still to come: Future, and Promise, which completes one. A future is complete exactly once: by its
// promise, by cancel(), or because its promise is destroyed; the first of these counts.
//
// Continuations. What is given to then(), and what follows a co_await (kumi/coroutine.hpp), runs on the thread that
// completes the future: for answers of other nodes, a thread that makes progress, as in a handler. A continuation must
// be short and must not wait: get() is refused there with ErrorCode::misuse. Continuations of a thread run one after
// the other, so a chain of any length takes no stack: what a continuation makes ready runs when it has returned. An
// exception becomes the error of the next future; an Error may be thrown, too.
//
// The end of the job. Futures and promises may outlive their job. What the job was to answer is then ErrorCode::ended
// (or ErrorCode::node_lost, if the other node has left before), and so is get() of a promise of this job that is not
// complete. The program may still complete its promise.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/future/future_state.hpp"
#include "kumi/engine/future/step.hpp"

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace kumi {

namespace engine {
class Progress;
std::shared_ptr<ProgressLink> link_of(Progress* progress);
} // namespace engine

/// An answer that is still to come; T may be void. For any thread, but for one at a time: only is_ready() and cancel()
/// may be called while another thread waits in get(). Destroying it neither waits nor cancels. The error of a future of
/// the job that is dropped is told on standard error, and a process that has joined the job does not exit with 0 then;
/// it may if a node has left or a deadline has passed, and what was cancelled is not told. A future that was moved
/// from, or whose answer then() took, is ready with an error.
template <class T>
class [[nodiscard]] Future {
public:
    Future() = default;
    Future(Future&&) noexcept = default;
    Future& operator=(Future&&) noexcept = default;

    /// A future that has its answer, or its error.
    static Future ready(Result<T> answer) {
        auto state = std::make_shared<engine::AnswerState<T>>(nullptr);
        state->complete(std::move(answer));
        return Future(std::move(state));
    }
    static Future ready()
        requires std::is_void_v<T>
    {
        return ready(Result<void>());
    }

    /// get() would not wait.
    bool is_ready() const noexcept { return !state_ || state_->is_ready(); }

    /// Waits for the answer and takes it: once. An error says what went wrong and on which node. When the deadline
    /// comes first, or this is called in a handler or a continuation before it is ready, that is the error and the
    /// future can still be used.
    Result<T> get(Instant deadline = never) {
        if (!state_) return nothing();
        if (auto waited = state_->wait(deadline); !waited) return waited.error();
        return state_->take();
    }

    /// Gives the answer, as a Result<T>, to `function`: at once if ready (inside a continuation: after that), otherwise
    /// on the thread that completes this. What `function` answers (a value, a Result or another Future) comes to the
    /// future that this returns; so does what it throws. When that one is cancelled first, the function is not called.
    template <class Function>
    auto then(Function function) {
        using Step = engine::Step<Function, T>;
        const auto state = engine::FutureAccess::take(*this);
        const auto step = std::make_shared<Step>(
            Step{std::move(function), engine::FutureAccess::promise<typename Step::Value>(state->link())});
        auto future = step->promise.future();
        engine::FutureAccess::state_of(step->promise)->follow(state);
        state->when_ready([step, state] { step->run(state->take()); });
        return future;
    }

    /// The answer is not wanted any more: get() says so, unless it is ready already. Cancels what this future was made
    /// of, too: by then(), when_all(), when_any() or a coroutine. After cancel() nothing is stored for a get and
    /// nothing is read for a put. A function that another node was asked for may still run there.
    void cancel() {
        if (state_) engine::FutureState::cancel(state_);
    }

private:
    friend class Promise<T>;
    friend struct engine::FutureAccess;
    explicit Future(std::shared_ptr<engine::AnswerState<T>> state) noexcept : state_(std::move(state)) {}
    static Error nothing() {
        return Error(ErrorCode::misuse, "this future has no answer: it was moved from, or then() took it");
    }

    std::shared_ptr<engine::AnswerState<T>> state_;
};

/// A future that has its answer.
template <class T>
Future<T> ready(T value) {
    return Future<T>::ready(Result<T>(std::move(value)));
}
inline Future<void> ready() { return Future<void>::ready(); }

/// The side that completes a future. For any thread, but for one at a time. Destroyed without an answer, it completes
/// the future with ErrorCode::cancelled.
template <class T>
class Promise {
public:
    /// A promise of the program. Waiting for its future makes progress for the job of this process, if there is one
    /// now or when get() is called.
    Promise() : Promise(engine::ProgressLink::current()) {}
    /// A promise of the engine.
    explicit Promise(engine::Progress* progress) : Promise(engine::link_of(progress)) {}
    Promise(Promise&&) noexcept = default;
    Promise& operator=(Promise&& other) noexcept {
        const Promise old(std::exchange(state_, std::exchange(other.state_, nullptr)), has_given_);
        has_given_ = other.has_given_;
        return *this;
    }
    ~Promise() {
        if (state_) state_->drop();
    }

    /// The future of this promise: once. Later calls give a future that is ready with an error.
    Future<T> future() {
        if (!state_) return {};
        if (std::exchange(has_given_, true))
            return Future<T>::ready(Error(ErrorCode::misuse, "the future of this promise was taken before"));
        return Future<T>(state_);
    }
    /// There is an answer, or nobody wants one any more.
    bool is_ready() const noexcept { return !state_ || state_->is_ready(); }
    /// Gives the answer and runs continuations. False: the future was complete before, or this was moved from.
    bool complete(Result<T> answer) { return state_ && state_->complete(std::move(answer)); }
    bool complete()
        requires std::is_void_v<T>
    {
        return complete(Result<void>());
    }
    /// For the engine: the number of what was asked, before the future is given away.
    void set_asked(std::uint64_t asked) noexcept { state_->set_asked(asked); }

private:
    friend struct engine::FutureAccess;
    explicit Promise(std::shared_ptr<engine::ProgressLink> link)
        : state_(std::make_shared<engine::AnswerState<T>>(std::move(link))) {}
    Promise(std::shared_ptr<engine::AnswerState<T>> state, bool has_given) noexcept
        : state_(std::move(state)), has_given_(has_given) {}

    std::shared_ptr<engine::AnswerState<T>> state_;
    bool has_given_ = false;
};

namespace engine {
using kumi::Promise;
} // namespace engine

} // namespace kumi
