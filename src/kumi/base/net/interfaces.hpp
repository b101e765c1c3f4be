#pragma once

// The network interfaces of this host.

#include "kumi/base/net/ip_address.hpp"
#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::base {

/// One address of this host, with its interface and subnet.
struct Interface {
    std::string name;
    IpAddress address;
    unsigned bits = 0;     // length of the prefix of its subnet, which is reached without a router
    bool leads_out = false; // packets to addresses outside of all subnets leave from this address

    Subnet subnet() const noexcept { return {with_last_bits(address, bits, false), bits}; }
    std::string text() const; // "10.77.1.4/24"
};

/// True when other hosts may use this address to reach a host: not an address of the loopback, nor a link-local one.
bool is_for_others(const IpAddress& address) noexcept;

/// The addresses of this host for which is_for_others() holds, on interfaces that are up and running, in the system's
/// order.
Result<std::vector<Interface>> running_interfaces();

} // namespace kumi::base
