#pragma once

// A cluster: hosts, and the networks between them. Plain data. It comes from a file, from a list of hosts, or from what
// the hosts report; placement and routing are computed from it.

#include "kumi/cluster/topology.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::cluster {

using HostIndex = std::uint32_t;    // in Cluster::hosts
using NetworkIndex = std::uint32_t; // in Cluster::networks

/// An option of the device that drives a network, as in the file: { "buffer", "4M" }.
struct Option {
    std::string name;
    std::string value;
};

struct Network {
    std::string name;
    std::string device = "udp";
    std::int64_t priority = 0; // of two networks between two hosts the one with the higher priority is used
    bool is_measured = false;  // its priority is not known: among such networks the one with more bandwidth is used
    char letter = '?';         // in maps, as in "M0"
    bool encrypt = false;
    Topology topology; // which hosts may send to each other on it
    std::vector<Option> options;
    // For the lab, which makes the network: its bandwidth, 0 for no limit; and its largest packet.
    std::uint64_t bits_per_second = 0;
    std::uint32_t mtu = 1500;
};

struct Host {
    std::string name;
    std::uint32_t slots = 1;            // nodes that the host may run
    std::vector<std::string> addresses; // by network; empty if the host is not on that network

    bool is_on(NetworkIndex network) const noexcept {
        return network < addresses.size() && !addresses[network].empty();
    }
};

struct Cluster {
    std::vector<Network> networks; // the best first
    std::vector<Host> hosts;
    std::optional<std::uint32_t> silence_seconds{}; // until a node that answers on no network is lost; 0: never

    std::optional<HostIndex> find_host(std::string_view name) const noexcept;
    std::optional<NetworkIndex> find_network(std::string_view name) const noexcept;
    std::uint64_t slots() const noexcept;
};

} // namespace kumi::cluster
