#pragma once

// IP addresses and subnets as values. No system calls.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace kumi::base {

/// An IPv4 or IPv6 address: the first `size` bytes, in network order.
struct IpAddress {
    std::array<std::uint8_t, 16> bytes{};
    unsigned size = 4; // or 16

    static std::optional<IpAddress> parse(const std::string& text);
    std::string text() const;
    /// True when one host can have this address: it is not unspecified (0.0.0.0, ::), multicast or broadcast.
    bool is_of_one_host() const noexcept;
    auto operator<=>(const IpAddress&) const = default;
};

/// The same address with all bits from the one numbered `bits` on set to `value`.
IpAddress with_last_bits(IpAddress address, unsigned bits, bool value) noexcept;

/// All addresses that share their first `bits` bits with `base`, whose other bits are 0.
struct Subnet {
    IpAddress base;
    unsigned bits = 0;

    bool holds(const IpAddress& address) const noexcept;
    bool overlaps(const Subnet& other) const noexcept;
    std::string text() const; // "10.77.1.0/24"
};

} // namespace kumi::base
