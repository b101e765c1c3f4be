#pragma once

#include <cstdint>

namespace kumi::pm {

/// A node's number, from 0. On a channel: the number of one of the channel's ends.
using Node = std::uint32_t;

} // namespace kumi::pm
