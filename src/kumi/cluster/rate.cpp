#include "kumi/cluster/rate.hpp"

#include "kumi/base/text/number_text.hpp"

#include <utility>

namespace kumi::cluster {

Result<std::uint64_t> parse_rate(std::string_view text) {
    if (text == "none") return 0;
    std::string_view unit = text;
    const auto number = base::take_decimal(unit);
    static constexpr std::pair<std::string_view, double> units[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
    for (const auto& [name, factor] : units) {
        const double bits = number.value_or(0) * factor;
        if (unit == name && bits >= 1e3 && bits <= 1e12) return static_cast<std::uint64_t>(std::llround(bits));
    }
    return error("\"{}\" is no rate; write it like 100mbit, from 1kbit to 1000gbit, or none", text);
}

} // namespace kumi::cluster
