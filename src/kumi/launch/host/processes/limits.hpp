#pragma once

#include "kumi/base/result.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::launch::host {

/// Refuses more nodes than this machine can hold, before any of them is started. Raises this process's limit of open
/// files to what the nodes need.
Result<void> check_limits(std::uint32_t nodes);

/// Refuses more hosts than this process may have connections to. Raises that limit.
Result<void> check_host_limits(std::size_t hosts);

} // namespace kumi::launch::host
