#include "kumi/group/settings.hpp"

#include "kumi/base/text/number_text.hpp"

#include <cmath>
#include <fmt/ranges.h>

namespace kumi::group {
namespace {

/// The numbers as they are given.
struct GivenCosts {
    std::optional<double> overhead, latency, bandwidth;
};

Result<void> read_entry(std::string_view entry, GivenCosts& given, Settings& settings) {
    const std::size_t sign = entry.find('=');
    const std::string_view name = entry.substr(0, sign);
    const std::string_view value = sign == entry.npos ? std::string_view() : entry.substr(sign + 1);
    if (name == "way") {
        settings.way = way_named(value);
        if (!settings.way) return error(ErrorCode::misuse, "way={}: there are {}", value, fmt::join(way_names, ", "));
        return {};
    }
    auto* const number = name == "overhead"    ? &given.overhead
                         : name == "latency"   ? &given.latency
                         : name == "bandwidth" ? &given.bandwidth
                                               : nullptr;
    if (number == nullptr)
        return error(ErrorCode::misuse,
                     "{}: say overhead=US, latency=US, bandwidth=MB or way=NAME, with commas between", entry);
    *number = base::number_in<double>(value);
    if (!*number || !std::isfinite(**number) || **number <= 0)
        return error(ErrorCode::misuse, "{}: {} is a number above 0", entry, name);
    return {};
}

} // namespace

Result<Settings> parse_settings(std::string_view text) {
    Settings settings;
    GivenCosts given;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        if (auto good = read_entry(text.substr(0, comma), given, settings); !good) return good.error();
        text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
    }
    if (!given.overhead && !given.latency && !given.bandwidth) return settings;
    if (!given.overhead || !given.latency || !given.bandwidth)
        return error(ErrorCode::misuse, "overhead, latency and bandwidth go together: give all three");
    if (*given.overhead > *given.latency)
        return error(ErrorCode::misuse, "overhead={} is part of latency={}, and cannot be more", *given.overhead,
                     *given.latency);
    settings.costs =
        Costs{.overhead_us = *given.overhead, .latency_us = *given.latency, .us_per_byte = 1 / *given.bandwidth};
    return settings;
}

} // namespace kumi::group
