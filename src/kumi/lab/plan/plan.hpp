#pragma once

// A lab as a cluster file describes it: names, addresses and the commands that set them up. Pure.
//
// Each host is a set of namespaces, and all networks are bridges in one more network namespace, the switch. A host
// has an interface on each of its networks, with the network's name; a cable leads from it to a port of the switch.

#include "kumi/base/result.hpp"
#include "kumi/cluster/cluster.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace kumi::lab {

/// The host that the lab adds, on every network, to run launchers on.
inline constexpr const char* front_end = "front";

/// One host's place on one network.
struct Port {
    std::uint32_t network = 0; // in Plan::networks
    std::string name;          // in the switch
    std::string interface;     // at the host's end of the cable
    std::string address;
    unsigned subnet_bits = 0;
};

struct PlannedHost {
    std::string name;
    std::vector<Port> ports; // the best network first
};

struct PlannedNetwork {
    std::string name;
    std::string bridge;
    std::uint32_t mtu = 1500;
    std::uint64_t bits_per_second = 0; // 0: no limit
};

struct Plan {
    std::vector<PlannedHost> hosts;
    std::vector<PlannedNetwork> networks;
    std::string names; // the text of /etc/hosts on every host

    static Result<Plan> make(const cluster::Cluster& cluster);

    /// Finds a host or a network by its name; the error names those that there are.
    Result<std::uint32_t> find_host(std::string_view name) const;
    Result<std::uint32_t> find_network(std::string_view name) const;
    /// Finds the port of a host on a network; the error names the networks that the host is on.
    Result<Port> find_port(std::string_view host, std::string_view network) const;
};

/// Lines for `ip -batch`, in the switch: all bridges, and cables to hosts whose processes are `hosts`, in order.
std::string switch_links(const Plan& plan, const std::vector<pid_t>& hosts);
/// Lines for `ip -batch`, on the host.
std::string host_links(const PlannedHost& host);
/// A line for `tc -batch`: limits what leaves by the interface; 0 lifts the limit.
std::string shaping(std::string_view interface, std::uint64_t bits_per_second, std::uint32_t mtu);
/// For `nft`, in the switch: loses that many frames of a hundred that cross the network.
std::string loss_rules(const PlannedNetwork& network, double percent);

} // namespace kumi::lab
