#pragma once

// Our own bugs end the program at once, in release builds too: a wrong invariant in a message layer
// shows up far away from its cause, in somebody else's numbers.

namespace kumi::base {

/// Prints where and what, then aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, const char* function) noexcept;

} // namespace kumi::base

/// States what is always true. For our bugs only: what a user or a peer can cause is a Result or a counted drop.
#define KUMI_ASSERT(condition)                                                                                         \
    (__builtin_expect(static_cast<bool>(condition), 1)                                                                 \
         ? static_cast<void>(0)                                                                                        \
         : ::kumi::base::assertion_failed(#condition, __FILE__, __LINE__, __func__))
