#pragma once

#include "kumi/base/result.hpp"

#include <cstdint>

namespace kumi::launch::host {

/// Refuses more nodes than this machine can hold, before any of them is started; raises our own limit of open files.
Result<void> check_limits(std::uint32_t nodes);

} // namespace kumi::launch::host
