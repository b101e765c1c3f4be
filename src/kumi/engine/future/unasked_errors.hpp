#pragma once

// Errors that no call has returned, because the program did not ask: those of futures that were dropped, and of
// requests that no sync() followed. The user reads them on standard error.

#include "kumi/base/result.hpp"

#include <cstddef>
#include <mutex>
#include <string_view>

namespace kumi::engine {

/// For any thread.
class UnaskedErrors {
public:
    /// From now on a process with such an error does not exit with status 0: base::fail_exit(). Not for errors that
    /// tell that a node has left, or that a deadline which the program gave has passed.
    void fail_exit() noexcept;
    /// Says `why` and `remark`, for the first said_max of them. What was cancelled, or ended with the job, is no error.
    void add(const Error& why, std::string_view remark = not_asked) noexcept;
    /// The job ends: says how many more there were.
    void say_rest() noexcept;

    static constexpr std::size_t said_max = 10;
    static constexpr std::string_view not_asked =
        " (the program did not ask: it dropped the future, or did not call sync())";

private:
    std::mutex mutex_;
    std::size_t count_ = 0; // of all that were added
    bool fails_exit_ = false;
    bool has_failed_ = false; // an error was added that fails the exit
};

} // namespace kumi::engine
