#pragma once

// A checksum over packets.

#include "kumi/base/bytes.hpp"

#include <cstdint>

namespace kumi::base {

/// The checksum of `head` followed by `body`. It detects damage, not forgery. It is CRC-32C over four interleaved lanes
/// of words, mixed into one number; the processor's CRC instruction computes the lanes at memory speed. Requires that
/// both sizes are multiples of 8, and that the size of `head` is a multiple of 32 unless `body` is empty. Then the
/// checksum does not depend on where a packet is cut in two.
std::uint32_t checksum(Bytes head, Bytes body = {}) noexcept;

/// The same number without the CRC instruction: for processors that lack it, and to test checksum().
std::uint32_t checksum_by_table(Bytes head, Bytes body = {}) noexcept;

} // namespace kumi::base
