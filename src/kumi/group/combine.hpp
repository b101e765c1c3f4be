#pragma once

// The operation of a reduction, without its types.

#include "kumi/base/function_ref.hpp"

#include <cstddef>

namespace kumi::group {

/// How values are combined: `into` becomes (mine, other), or (other, mine) if the other ones come first. It may be
/// where `mine` is.
using Combine = base::FunctionRef<void(std::byte* into, const std::byte* mine, const std::byte* other,
                                       std::size_t bytes, bool other_is_first)>;

} // namespace kumi::group
