#pragma once

// Patterns for many names: "a[0-3,7]" is a0 a1 a2 a3 a7, "n[08-10]" is n08 n09 n10, "10.0.0.[1-4]" is four addresses.

#include "kumi/base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kumi::cluster {

/// A pattern for more names is an error: it must be a mistake.
inline constexpr std::size_t range_names_max = 65'536;

/// All names that the pattern stands for, in order; the pattern itself if it has no brackets.
Result<std::vector<std::string>> expand(std::string_view pattern);

/// The items of a list, split at commas outside of brackets: "a,b[0,2]:2" has two.
std::vector<std::string_view> split_list(std::string_view list);

} // namespace kumi::cluster
