#pragma once

// What this machine offers to this process: cores, memory, its name and id.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kumi::base {

/// The largest page of the systems that Kumi runs on: x86-64 has pages of 4 KiB, aarch64 of 4, 16 or 64 KiB. What
/// begins at a multiple of this can be mapped everywhere.
inline constexpr std::size_t page_bytes_max = 64 << 10;

/// The number of cores that this process may run on.
unsigned cores_allowed() noexcept;

/// These cores as a bitmap, with core 0 in the lowest bit of the first byte. Several processes find out from their
/// bitmaps how many cores they have together. Empty when the system does not say.
std::vector<std::byte> cores_allowed_bitmap();

/// The memory that can be allocated without swapping: that of the system, or less if a control group limits it.
std::uint64_t memory_available_bytes();

std::string host_name();

/// Identifies a host: equal for processes of one host, unless they are in containers that see it differently. Processes
/// with equal ids reach each other through loopback addresses and abstract Unix sockets.
struct HostId {
    std::array<char, 36> boot_id{}; // of the running system
    std::uint64_t network_device = 0;
    std::uint64_t network_inode = 0; // of the namespace

    friend bool operator==(const HostId&, const HostId&) = default;
};
/// The id of this process's host. Empty when the system hides it.
std::optional<HostId> host_id();

/// "512 B", "64 KiB", "1.5 GiB".
std::string readable_bytes(std::uint64_t bytes);
/// The same, in bytes where rounding would make the text say `limit`: "262145 B", beside "256 KiB".
std::string readable_bytes_beside(std::uint64_t bytes, std::uint64_t limit);

} // namespace kumi::base
