#pragma once

#include <charconv>
#include <cmath>
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

/// Takes the decimal number that `text` starts with off it, like 2.5; nothing when there is none, or it is negative.
inline std::optional<double> take_decimal(std::string_view& text) noexcept {
    double number = 0;
    const auto [end, status] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (status != std::errc{} || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

} // namespace kumi::base
