#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"

#include <string>

namespace kumi::lab {

/// Waits until an interface of the calling thread's network can carry packets. The system drops packets until it has
/// seen that both ends of a cable are in, and on a busy machine that takes a while.
Result<void> wait_for_carrier(const std::string& interface, Instant deadline);

} // namespace kumi::lab
