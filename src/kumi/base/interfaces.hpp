#pragma once

#include "kumi/base/ip_address.hpp"
#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::base {

/// One address of this host, and where it is.
struct Interface {
    std::string name;
    IpAddress address;
    unsigned bits = 0;     // of the subnet that is reached there without a router
    bool leads_out = false; // what is sent to the world outside all subnets leaves from here

    Subnet subnet() const noexcept { return {with_last_bits(address, bits, false), bits}; }
    std::string text() const; // "10.77.1.4/24"
};

/// Whether other hosts may know a host by it; not those of the loopback or of a single cable.
bool is_for_others(const IpAddress& address) noexcept;

/// What this host has that is up and running and for others, in the system's order.
Result<std::vector<Interface>> running_interfaces();

} // namespace kumi::base
