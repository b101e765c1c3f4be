#pragma once

// Which subnet holds a network's hosts, and which address in it is free. Pure.

#include "kumi/base/net/ip_address.hpp"
#include "kumi/base/result.hpp"

#include <vector>

namespace kumi::lab {

using base::IpAddress;
using base::Subnet;

/// The smallest subnet, from /24 (IPv4) or /64 (IPv6) on, in which all `members` are addresses of hosts and one more
/// address is free. The error says what is wrong with the members.
Result<Subnet> subnet_of(const std::vector<IpAddress>& members);

/// The highest address that a host may have and none of `members` has; in IPv6, of those that end in ::0000 to ::fffe.
IpAddress highest_free(const Subnet& subnet, const std::vector<IpAddress>& members);

} // namespace kumi::lab
