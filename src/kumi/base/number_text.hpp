#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace kumi::base {

/// The number that is all of `text`; nothing when it is no such number, or more follows.
template <class Number>
std::optional<Number> number_in(std::string_view text) noexcept {
    Number number{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

} // namespace kumi::base
