#include "kumi/cluster/rate.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace kumi::cluster {
namespace {

/// The number that `text` starts with, and what follows; nothing when there is none that is finite and not negative.
bool take_number(std::string_view& text, double& number) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return status == std::errc{} && std::isfinite(number) && number >= 0 && !std::signbit(number);
}

} // namespace

Result<std::uint64_t> parse_rate(std::string_view text) {
    if (text == "none") return 0;
    std::string_view unit = text;
    double number = 0;
    const bool has_number = take_number(unit, number);
    static constexpr std::pair<std::string_view, double> units[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
    for (const auto& [name, factor] : units) {
        const double bits = number * factor;
        if (has_number && unit == name && bits >= 1e3 && bits <= 1e12) return static_cast<std::uint64_t>(std::llround(bits));
    }
    return error("\"{}\" is no rate; write it like 100mbit, from 1kbit to 1000gbit, or none", text);
}

Result<double> parse_percent(std::string_view text) {
    std::string_view rest = text;
    double number = 0;
    if (take_number(rest, number) && rest.empty() && number <= 100) return number;
    return error("\"{}\" is no percentage; write a number from 0 to 100", text);
}

std::uint64_t burst_bytes(std::uint64_t bits_per_second, std::uint32_t mtu) noexcept {
    constexpr std::uint64_t header_bytes_max = 64; // below IP
    return std::max<std::uint64_t>(bits_per_second / 8 / 1000, 2 * (mtu + header_bytes_max));
}

} // namespace kumi::cluster
