#pragma once

// Continuations of futures run one after the other on a thread, never one inside another: what a continuation makes
// ready runs after it has returned. So a chain of any length takes no stack.

#include <functional>

namespace kumi::engine {

/// Runs `call` on this thread: now, or after the continuation that this thread is in and those that came before.
/// `call` must not throw.
void run_continuation(std::function<void()> call);

/// This thread is inside a continuation, where nothing may wait: others wait for it to return.
bool in_continuation() noexcept;

} // namespace kumi::engine
