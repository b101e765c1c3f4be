#pragma once

// What somebody has: hosts, and the networks that join them. Plain data; a file, a list of hosts or a look around
// makes it, and placement and routing are computed from it.

#include "kumi/cluster/topology.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::cluster {

using HostIndex = std::uint32_t;    // in Cluster::hosts
using NetworkIndex = std::uint32_t; // in Cluster::networks

/// A value of the device that drives a network, as the file has it: { "buffer", "4M" }.
struct Option {
    std::string name;
    std::string value;
};

struct Network {
    std::string name;
    std::string device = "udp";
    std::int64_t priority = 0; // of two networks that join two hosts the one with more is taken
    bool is_measured = false;  // nobody knows its priority: among such networks the one that carries more is taken
    char letter = '?';         // in maps, as in "M0"
    bool encrypt = false;
    Topology topology; // who may talk to whom on it
    std::vector<Option> options;
    // For the lab, which makes it: what it carries at most, 0 for no limit. And the largest packet.
    std::uint64_t bits_per_second = 0;
    std::uint32_t mtu = 1500;
};

struct Host {
    std::string name;
    std::uint32_t slots = 1;            // nodes that it may run
    std::vector<std::string> addresses; // by network; empty where it is not on that network

    bool is_on(NetworkIndex network) const noexcept {
        return network < addresses.size() && !addresses[network].empty();
    }
};

struct Cluster {
    std::vector<Network> networks; // the best first
    std::vector<Host> hosts;
    std::optional<std::uint32_t> silence_seconds{}; // until a node that answers by no network is lost; 0: never

    std::optional<HostIndex> find_host(std::string_view name) const noexcept;
    std::optional<NetworkIndex> find_network(std::string_view name) const noexcept;
    std::uint64_t slots() const noexcept;
};

} // namespace kumi::cluster
