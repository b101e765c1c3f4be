#pragma once

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string_view>

namespace kumi::lab {

/// "10", "0.1": of a hundred.
Result<double> parse_percent(std::string_view text);

/// What an interface may send at once after a pause, at that rate. A millisecond of it: less, and a busy machine's
/// late timers would cost bandwidth; more, and short messages would not see the limit. A packet must fit in any case.
std::uint64_t burst_bytes(std::uint64_t bits_per_second, std::uint32_t mtu) noexcept;

} // namespace kumi::lab
