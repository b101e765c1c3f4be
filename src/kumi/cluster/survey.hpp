#pragma once

// Derives a cluster from what the hosts report about themselves, where no file describes it. Pure: whether these
// networks really work, and which is the fastest, is found out when they are opened.
//
//   - Addresses of two or more hosts in one subnet are a network, which is named after the subnet: "10.77.1.0/24".
//   - An address that two hosts have is ignored, because it may lead to either. So bridges for containers, which are
//     alike everywhere, connect no hosts.
//   - A host with two addresses in a subnet is on the network with the first of them.
//   - Subnets that share their cables are one network, the first of them, IPv4 before IPv6: this is assumed if all
//     hosts of one subnet are in the other with the same interfaces.
//   - Hosts without a common subnet may still have routers between them. The addresses by which such hosts reach other
//     networks are the last network, "routed-ipv4" or "routed-ipv6".

#include "kumi/cluster/cluster.hpp"

#include "kumi/base/net/interfaces.hpp"
#include "kumi/base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kumi::cluster {

/// What a host reports about itself.
struct HostReport {
    std::string name;
    std::uint32_t slots = 1; // nodes on the host
    std::vector<base::Interface> interfaces;
};

/// The cluster of these hosts, in their order. The priority of its subnets is not known: they must be measured. An
/// error if some hosts cannot be reached from the others, not even through third ones.
Result<Cluster> survey(const std::vector<HostReport>& reports);

} // namespace kumi::cluster
