#include "kumi/lab/plan/rate.hpp"

#include "kumi/base/text/number_text.hpp"

#include <algorithm>

namespace kumi::lab {

Result<double> parse_percent(std::string_view text) {
    std::string_view rest = text;
    const auto number = base::take_decimal(rest);
    if (number && rest.empty() && *number <= 100) return *number;
    return error("\"{}\" is no percentage; write a number from 0 to 100", text);
}

std::uint64_t burst_bytes(std::uint64_t bits_per_second, std::uint32_t mtu) noexcept {
    constexpr std::uint64_t header_bytes_max = 64; // below IP
    return std::max<std::uint64_t>(bits_per_second / 8 / 1000, 2 * (mtu + header_bytes_max));
}

} // namespace kumi::lab
