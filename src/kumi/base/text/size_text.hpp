#pragma once

// Sizes in texts.

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string_view>

namespace kumi::base {

/// Reads a size in bytes: "4096", "64K", "16M", "2G". The units are powers of 1024.
Result<std::uint64_t> parse_size(std::string_view text);

} // namespace kumi::base
