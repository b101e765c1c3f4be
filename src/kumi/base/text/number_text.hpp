#pragma once

// Numbers in texts.

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>

namespace kumi::base {

/// The number that `text` consists of. Nothing when `text` is not such a number, or more text follows it.
template <class Number>
std::optional<Number> number_in(std::string_view text) noexcept {
    Number number{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// Removes the decimal number, such as 2.5, that `text` starts with, and answers it. Nothing when there is none, or
/// when it is negative.
inline std::optional<double> take_decimal(std::string_view& text) noexcept {
    double number = 0;
    const auto [end, status] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (status != std::errc{} || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

} // namespace kumi::base
