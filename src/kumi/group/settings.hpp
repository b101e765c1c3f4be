#pragma once

// What a program, or KUMI_GROUPS, can set about multicasts. Include it to give settings to Job::adopt().

#include "kumi/base/result.hpp"
#include "kumi/group/plan/choice.hpp"

#include <optional>
#include <string_view>

namespace kumi::group {

/// What the user knows better than groups do. Groups find out what is not set.
struct Settings {
    std::optional<Costs> costs;
    std::optional<Way> way; // for all multicasts
};

/// Reads "overhead=0.2,latency=1.2,bandwidth=10000,way=circulant": in us, us and MB/s. Costs are given all three, or
/// none of them. Whatever else is there is ErrorCode::misuse.
Result<Settings> parse_settings(std::string_view text);

} // namespace kumi::group
