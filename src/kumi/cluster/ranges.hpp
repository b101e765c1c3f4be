#pragma once

// Many names in one: "a[0-3,7]" is a0 a1 a2 a3 a7, "n[08-10]" is n08 n09 n10, "10.0.0.[1-4]" four addresses.

#include "kumi/base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kumi::cluster {

/// Anything that would give more is a slip of the pen.
inline constexpr std::size_t range_names_max = 65'536;

/// All names that the pattern stands for, in order; itself, if it has no brackets.
Result<std::vector<std::string>> expand(std::string_view pattern);

/// The parts of a list, cut at commas that are not in brackets: "a,b[0,2]:2" has two.
std::vector<std::string_view> split_list(std::string_view list);

} // namespace kumi::cluster
