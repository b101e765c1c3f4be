#pragma once

// Errors as values. A function that can fail returns a Result: its value, or the Error that says why there is none.
// `Result` has the names of std::expected, so that with C++23 an alias can replace it. An error is made once, by the
// function that knows the cause, as one readable line, and is passed on unchanged.

#include "kumi/base/assert.hpp"

#include <cstdint>
#include <cstdlib>
#include <fmt/core.h>
#include <optional>
#include <string>
#include <utility>

namespace kumi {

/// The kind of a failure, for programs that act on it. Travels between nodes: new kinds go to the end.
enum class ErrorCode : std::uint8_t {
    failed,    // any other cause; the text says which
    timed_out, // the deadline came first; what was waited for may still happen
    node_lost, // a node that is needed has left the job, or is lost
    refused,   // another node refused it, or a handler or function threw there
    misuse,    // the call is wrong here, such as waiting in a handler, or does not fit the calls of other nodes
    not_found, // no such node, segment, place, flag or file
    too_large, // more than fits, here or at the other node
    no_memory, // a node or host has no memory, or no room, for it
    cancelled, // by the program
    ended,     // the job has ended
};
/// The code with that number, as another node has sent it; `refused` if there is none.
ErrorCode error_code_of(std::uint32_t number) noexcept;
/// "timed out"; for people.
const char* name_of(ErrorCode code) noexcept;

/// Why something failed: a code for programs, and one line for people that says what was tried, what the system
/// answered, and what to do about it.
class Error {
public:
    explicit Error(std::string text) : text_(std::move(text)) {}
    Error(ErrorCode code, std::string text) : text_(std::move(text)), code_(code) {}

    const std::string& text() const noexcept { return text_; }
    ErrorCode code() const noexcept { return code_; }

    /// True when the user has already been told, by another process; see fail().
    bool told() const noexcept { return told_; }
    Error as_told() const {
        Error same = *this;
        same.told_ = true;
        return same;
    }

private:
    std::string text_;
    ErrorCode code_ = ErrorCode::failed;
    bool told_ = false;
};

/// error() without the types of its arguments, so that it is compiled once.
Error format_error(ErrorCode code, fmt::string_view format, fmt::format_args arguments);

/// Makes an Error as fmt::format makes a string; the compiler checks the format. Public headers of Kumi do not use it
/// but Error(text): a format costs every program that includes them 20 ms.
template <class... Arguments>
Error error(ErrorCode code, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    return format_error(code, format, fmt::make_format_args(arguments...));
}
template <class... Arguments>
Error error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    return format_error(ErrorCode::failed, format, fmt::make_format_args(arguments...));
}

/// Makes an Error of what was tried and the system's text for `error_number`: "open x: Permission denied". The code
/// follows from the number.
Error system_error(int error_number, std::string tried);

/// The exception that is being handled, as an Error: of an Error its code and text, of a std::exception its text, of
/// others that they are none. `otherwise` is the code of all but Errors. Requires that an exception is being handled.
Error error_of_thrown(ErrorCode otherwise);
/// The same, after the name of what threw it: "NAME threw: TEXT".
Error error_of_thrown(const std::string& name, ErrorCode otherwise);

/// Prints "kumi: TEXT" to standard error, unless the user has already been told. Answers an exit code for main().
int fail(const Error& reason) noexcept;

/// A value, or the Error that says why there is none.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::in_place, std::move(value)) {}
    Result(Error reason) : reason_(std::move(reason)) {}

    bool has_value() const noexcept { return value_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & { return KUMI_ASSERT(has_value()), *value_; }
    const T& value() const& { return KUMI_ASSERT(has_value()), *value_; }
    T&& value() && { return KUMI_ASSERT(has_value()), *std::move(value_); }

    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const { return KUMI_ASSERT(!has_value()), *reason_; }

private:
    // One of them. A std::variant is one member less, and takes the compiler four times as long.
    std::optional<T> value_;
    std::optional<Error> reason_;
};

/// Success, or the Error that says what failed.
template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error reason) : reason_(std::move(reason)) {}

    bool has_value() const noexcept { return !reason_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    const Error& error() const { return KUMI_ASSERT(!has_value()), *reason_; }

private:
    std::optional<Error> reason_;
};

/// Answers the value of `result`. If there is none, reports the error as fail() does and exits. For programs that end
/// on any error.
template <class T>
T must(Result<T> result) {
    if (!result) std::exit(fail(result.error()));
    return *std::move(result);
}
inline void must(const Result<void>& result) {
    if (!result) std::exit(fail(result.error()));
}

} // namespace kumi
