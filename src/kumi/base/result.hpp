#pragma once

// What the world can refuse comes back as a value. `Result` uses std::expected's names, so that C++23
// can replace it by an alias. An error is made once, by the function that knows the cause, as one
// readable line, and passed on untouched.

#include "kumi/base/assert.hpp"

#include <cstdlib>
#include <fmt/core.h>
#include <string>
#include <utility>
#include <variant>

namespace kumi {

/// Why something failed: one line that names what was tried, what the system said, and what to do about it.
class Error {
public:
    explicit Error(std::string text) : text_(std::move(text)) {}

    const std::string& text() const noexcept { return text_; }

    /// The user has been told already, by somebody else; see fail().
    bool told() const noexcept { return told_; }
    Error as_told() const {
        Error same = *this;
        same.told_ = true;
        return same;
    }

private:
    std::string text_;
    bool told_ = false;
};

/// Makes an Error as fmt::format makes a string.
template <class... Arguments>
Error error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    return Error(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Makes an Error that ends in what the system says about `error_number`: "open x: Permission denied".
Error system_error(int error_number, std::string tried);

/// Prints "kumi: TEXT" to standard error, unless the user has been told already; answers an exit code for main().
int fail(const Error& reason) noexcept;

/// A value, or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
    Result(Error reason) : content_(std::in_place_index<1>, std::move(reason)) {}

    bool has_value() const noexcept { return content_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & { return KUMI_ASSERT(has_value()), *std::get_if<0>(&content_); }
    const T& value() const& { return KUMI_ASSERT(has_value()), *std::get_if<0>(&content_); }
    T&& value() && { return KUMI_ASSERT(has_value()), std::move(*std::get_if<0>(&content_)); }

    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const { return KUMI_ASSERT(!has_value()), *std::get_if<1>(&content_); }

private:
    std::variant<T, Error> content_;
};

/// Success without a value, or the reason why not.
template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error reason) : content_(std::move(reason)) {}

    bool has_value() const noexcept { return content_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    const Error& error() const { return KUMI_ASSERT(!has_value()), *std::get_if<1>(&content_); }

private:
    std::variant<std::monostate, Error> content_;
};

/// What was asked for, or the end of the program: says why, as fail() does, and exits. For a main() that could do no
/// more about it.
template <class T>
T must(Result<T> result) {
    if (!result) std::exit(fail(result.error()));
    return *std::move(result);
}
inline void must(const Result<void>& result) {
    if (!result) std::exit(fail(result.error()));
}

} // namespace kumi
