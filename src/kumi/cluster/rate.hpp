#pragma once

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string_view>

namespace kumi::cluster {

/// Parses "100mbit", "2.5gbit" or "64kbit" into bits per second; 0 for "none".
Result<std::uint64_t> parse_rate(std::string_view text);

} // namespace kumi::cluster
