#pragma once

#include "kumi/base/bytes.hpp"

#include <cstdint>

namespace kumi::base {

/// Tells damaged bytes from whole ones; not a protection against malice. CRC-32C over four interleaved lanes of
/// words, which the processor's own instruction does at memory speed, mixed into one. `head` is a multiple of 32
/// bytes long unless `body` is empty, and both are multiples of 8: so cutting a packet in two does not change its sum.
std::uint32_t checksum(Bytes head, Bytes body = {}) noexcept;

/// The same without the processor's help; for machines that have none, and to test the other.
std::uint32_t checksum_by_table(Bytes head, Bytes body = {}) noexcept;

} // namespace kumi::base
