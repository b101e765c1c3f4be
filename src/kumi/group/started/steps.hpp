#pragma once

// The steps of a collective: a coroutine over a CollectiveCall, which is its first parameter. A step that waits is a
// co_await. In a blocking call the calling thread waits there and the coroutine never suspends. In a call that was
// started the coroutine suspends, and the thread that makes progress resumes it. So both forms of a collective have the
// same steps.
//
// A coroutine begins at once, and runs until it waits or ends. Frames lie in memory of the set (frame_stack.hpp): the
// steps of a collective may await other steps, and one such coroutine ends before the next one begins.

#include "kumi/group/started/frame_stack.hpp"

#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

namespace kumi::group {

class CollectiveCall;

/// The memory for the frames of a call's steps.
FrameStack& frames_of(CollectiveCall& call) noexcept;

class [[nodiscard]] Steps {
public:
    struct promise_type;
    using Handle = std::coroutine_handle<promise_type>;

    struct promise_type {
        std::coroutine_handle<> after; // the steps that await these ones
        std::exception_ptr thrown;

        template <class... Rest>
        static void* operator new(std::size_t bytes, CollectiveCall& call, Rest&...) {
            return frames_of(call).take(bytes);
        }
        static void operator delete(void* frame, std::size_t bytes) noexcept { FrameStack::give_back(frame, bytes); }

        Steps get_return_object() noexcept { return Steps(Handle::from_promise(*this)); }
        std::suspend_never initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept { return Last{}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { thrown = std::current_exception(); }
    };

    Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Steps& operator=(Steps&&) = delete;
    /// Steps that have not ended are given up.
    ~Steps() {
        if (handle_) handle_.destroy();
    }

    bool is_done() const noexcept { return handle_.done(); }
    /// What the steps threw; null: nothing.
    std::exception_ptr thrown() const noexcept { return handle_.promise().thrown; }

    // Awaited by other steps.
    bool await_ready() const noexcept { return handle_.done(); }
    void await_suspend(std::coroutine_handle<> after) noexcept { handle_.promise().after = after; }
    void await_resume() const {
        if (handle_.promise().thrown) std::rethrow_exception(handle_.promise().thrown);
    }

private:
    /// Goes on with the steps that await these ones, if these ones have suspended meanwhile.
    struct Last {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle ended) const noexcept {
            return ended.promise().after ? ended.promise().after : std::noop_coroutine();
        }
        void await_resume() const noexcept {}
    };

    explicit Steps(Handle handle) noexcept : handle_(handle) {}

    Handle handle_;
};

} // namespace kumi::group
