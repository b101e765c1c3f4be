#pragma once

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string_view>

namespace kumi::lab {

/// Reads a percentage: "10", "0.1".
Result<double> parse_percent(std::string_view text);

/// How many bytes an interface with that rate may send at once after a pause: those of a millisecond. With less, a busy
/// machine's late timers would cost bandwidth; with more, short messages would not see the limit. At least a packet.
std::uint64_t burst_bytes(std::uint64_t bits_per_second, std::uint32_t mtu) noexcept;

} // namespace kumi::lab
