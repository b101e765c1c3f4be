#pragma once

// Node numbers.

#include <cstdint>

namespace kumi::pm {

/// The number of a node of the job, from 0. On a channel: the number of one of its ends.
using Node = std::uint32_t;

} // namespace kumi::pm
