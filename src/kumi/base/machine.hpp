#pragma once

// What this machine offers to this process: cores, memory, name.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kumi::base {

/// The largest page of the systems that Kumi runs on: x86-64 has pages of 4 KiB, aarch64 of 4, 16 or 64 KiB. What
/// begins at a multiple of this can be mapped everywhere.
inline constexpr std::size_t page_bytes_max = 64 << 10;

/// Cores that this process may run on.
unsigned cores_allowed() noexcept;

/// The same as a bitmap, core 0 in the lowest bit of the first byte: to find out how many cores several processes have
/// together. Empty when the system does not tell.
std::vector<std::byte> cores_allowed_bitmap();

/// Memory that can still be had without swapping: the system's, or what the control group leaves of it.
std::uint64_t memory_available_bytes();

std::string host_name();

/// "512 B", "64 KiB", "1.5 GiB".
std::string readable_bytes(std::uint64_t bytes);

} // namespace kumi::base
