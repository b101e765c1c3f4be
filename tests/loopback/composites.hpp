#pragma once

// Composites of all nodes in one process, for threads as nodes.

#include "kumi/device/composite/assembly.hpp"
#include "kumi/device/shmem/shmem.hpp"
#include "kumi/device/udp/udp.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kumi::loopback {

/// All ends of a channel. They close together: each waits for the others to have what it sent.
class Channels : public std::vector<std::unique_ptr<pm::Channel>> {
public:
    using std::vector<std::unique_ptr<pm::Channel>>::vector;
    Channels(std::vector<std::unique_ptr<pm::Channel>> channels) : vector(std::move(channels)) {}
    Channels(Channels&&) = default;
    ~Channels() {
        std::vector<std::thread> threads;
        for (auto& channel : *this) threads.emplace_back([&channel] { channel.reset(); });
        for (std::thread& thread : threads) thread.join();
    }
};

/// UDP that may fail.
inline void add_network(device::composite::Assembly& composites, const std::vector<pm::Node>& members,
                        const std::string& name = "udp") {
    const auto open = [&](auto) {
        return device::udp::open_in_one_process(std::vector<std::string>(members.size(), "127.0.0.1"),
                                                {.has_alternatives = true});
    };
    const auto added = composites.add(members, open, name);
    EXPECT_TRUE(added) << added.error().text();
}

inline Channels finish(device::composite::Assembly& composites, const device::composite::StripeOptions& stripes = {}) {
    auto made = composites.finish(stripes);
    EXPECT_TRUE(made) << made.error().text();
    return made ? Channels(*std::move(made)) : Channels{};
}

/// Two networks join all.
inline Channels two_networks(pm::Node nodes, const device::composite::StripeOptions& stripes = {}) {
    device::composite::Assembly composites(nodes);
    std::vector<pm::Node> all;
    for (pm::Node node = 0; node < nodes; ++node) all.push_back(node);
    for (const char* const name : {"second", "first"}) add_network(composites, all, name);
    return finish(composites, stripes);
}

/// They carry each message together, if it is not very small.
inline Channels two_rails(pm::Node nodes) { return two_networks(nodes, {.message_bytes_min = 1000, .always = true}); }

/// Only neighbours are joined; others pass on what is for the rest.
inline Channels chain(pm::Node nodes) {
    device::composite::Assembly composites(nodes);
    if (nodes == 1) add_network(composites, {0});
    for (pm::Node node = 0; node + 1 < nodes; ++node) add_network(composites, {node, node + 1});
    for (pm::Node from = 0; from < nodes; ++from)
        for (pm::Node to = 0; to < nodes; ++to)
            if (from + 1 < to || to + 1 < from) composites.add_relay(from, from < to ? from + 1 : from - 1, to);
    return finish(composites);
}

/// Even nodes on one host, odd ones on another: UDP for all, and shared memory inside a host.
inline Channels two_hosts(pm::Node nodes) {
    device::composite::Assembly composites(nodes);
    std::vector<pm::Node> all, hosts[2];
    for (pm::Node node = 0; node < nodes; ++node) all.push_back(node), hosts[node % 2].push_back(node);
    add_network(composites, all);
    for (const std::vector<pm::Node>& host : hosts) {
        if (host.empty()) continue;
        const auto shmem = composites.add(host, [&](auto wakers) {
            return device::shmem::open_in_one_process(static_cast<pm::Node>(host.size()), {}, wakers);
        });
        EXPECT_TRUE(shmem) << shmem.error().text();
    }
    return finish(composites);
}

} // namespace kumi::loopback
