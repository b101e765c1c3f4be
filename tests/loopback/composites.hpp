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

/// Even nodes on one host, odd ones on another: UDP for all, and shared memory inside a host if wanted.
inline Channels two_hosts(pm::Node nodes, bool with_shmem = true) {
    device::composite::Assembly composites(nodes);
    std::vector<pm::Node> all, hosts[2];
    for (pm::Node node = 0; node < nodes; ++node) all.push_back(node), hosts[node % 2].push_back(node);
    const auto udp = composites.add(all, [&](auto) { return device::udp::open_in_one_process(std::vector<std::string>(nodes, "127.0.0.1")); });
    EXPECT_TRUE(udp) << udp.error().text();
    for (const std::vector<pm::Node>& host : hosts) {
        if (!with_shmem || host.empty()) continue;
        const auto shmem = composites.add(
            host, [&](auto wakers) { return device::shmem::open_in_one_process(static_cast<pm::Node>(host.size()), {}, wakers); });
        EXPECT_TRUE(shmem) << shmem.error().text();
    }
    auto made = composites.finish();
    EXPECT_TRUE(made) << made.error().text();
    return made ? Channels(*std::move(made)) : Channels{};
}

} // namespace kumi::loopback
