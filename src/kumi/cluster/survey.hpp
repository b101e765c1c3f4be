#pragma once

// What hosts can tell of themselves, put together to a cluster, where no file describes it. Pure; that the networks
// which are found so really work, and which is the faster, is found out by whoever opens them.
//
//   - Addresses of two or more hosts in one subnet are a network, named by it: "10.77.1.0/24".
//   - An address that two hosts have leads to neither for sure, and counts for nothing: so bridges for containers,
//     which look the same everywhere, join nobody.
//   - A host that is in a subnet twice is on the network by the first of its addresses.
//   - Subnets that share their wires are one network, the first, IPv4 before IPv6: whenever all hosts of one are in the
//     other by the same interfaces.
//   - Hosts with no subnet in common may still have routers between them. The addresses by which they reach the world
//     are the last network, "routed-ipv4", or "routed-ipv6", of those hosts.

#include "kumi/cluster/cluster.hpp"

#include "kumi/base/interfaces.hpp"
#include "kumi/base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kumi::cluster {

/// What a host tells of itself.
struct HostReport {
    std::string name;
    std::uint32_t slots = 1; // nodes there
    std::vector<base::Interface> interfaces;
};

/// The cluster that these hosts are, in their order. Which of its subnets is the better is not known: they are to be
/// measured. Refuses when some hosts cannot be reached from the others, not even through third ones.
Result<Cluster> survey(const std::vector<HostReport>& reports);

} // namespace kumi::cluster
