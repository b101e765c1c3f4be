#pragma once

// Assertions. A broken invariant of Kumi ends the program at once, in release builds too: in a message layer its
// effects would appear far from the cause, as wrong results of the user's program.

namespace kumi::base {

/// Prints the place and the condition to standard error, and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, const char* function) noexcept;

} // namespace kumi::base

/// States a condition that always holds. Only for bugs of Kumi: what a user can cause is a Result, and what a peer can
/// cause is a packet that is counted and dropped.
#define KUMI_ASSERT(condition)                                                                                         \
    (__builtin_expect(static_cast<bool>(condition), 1)                                                                 \
         ? static_cast<void>(0)                                                                                        \
         : ::kumi::base::assertion_failed(#condition, __FILE__, __LINE__, __func__))
