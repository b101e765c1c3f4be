#pragma once

// Numbers of IP addresses, as far as the lab must count with them: which subnet holds a network's hosts, and which
// address in it is free. Pure.

#include "kumi/base/result.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kumi::lab {

/// An IPv4 or IPv6 address; the first `size` bytes, in network order.
struct IpAddress {
    std::array<std::uint8_t, 16> bytes{};
    unsigned size = 4; // or 16

    static std::optional<IpAddress> parse(const std::string& text);
    std::string text() const;
    auto operator<=>(const IpAddress&) const = default;
};

/// All addresses that share their first `bits` bits with `base`, whose other bits are 0.
struct Subnet {
    IpAddress base;
    unsigned bits = 0;

    bool holds(const IpAddress& address) const noexcept;
    bool overlaps(const Subnet& other) const noexcept;
    std::string text() const; // "10.77.1.0/24"
};

/// The smallest subnet, from /24 (IPv4) or /64 (IPv6) on, in which all of them are addresses of hosts, and one more
/// is free. The error says what is wrong with them.
Result<Subnet> subnet_of(const std::vector<IpAddress>& members);

/// The highest that a host may have and none of `members` has; in IPv6, of those that end in ::0000 to ::fffe.
IpAddress highest_free(const Subnet& subnet, const std::vector<IpAddress>& members);

} // namespace kumi::lab
