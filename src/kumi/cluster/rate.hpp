#pragma once

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string_view>

namespace kumi::cluster {

/// "100mbit", "2.5gbit", "64kbit", in bits per second; 0 for "none".
Result<std::uint64_t> parse_rate(std::string_view text);

} // namespace kumi::cluster
