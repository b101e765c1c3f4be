#include "engine/node.hpp"

#include "kumi/device/shmem/shmem.hpp"
#include "kumi/device/simulated/network.hpp"

#include <algorithm>

namespace kumi::engine_test {
namespace {

void run_threads(std::vector<std::unique_ptr<Channel>> channels, const conformance::Body& body) {
    std::vector<std::thread> threads;
    for (auto& channel : channels) threads.emplace_back([&body, &channel] {
            body(*channel);
            channel.reset();
        });
    for (std::thread& thread : threads) thread.join();
}

/// Rings for two dozen small messages, and buffers for one large one.
World tiny_shmem() {
    const auto run = [](Node nodes, const conformance::Body& body) {
        auto channels = device::shmem::open_in_one_process(nodes, {.rings_bytes_max = 1, .buffers_bytes_max = 1});
        ASSERT_TRUE(channels) << channels.error().text();
        run_threads(*std::move(channels), body);
    };
    return {.name = "tiny_shmem", .run = run, .has_joint_sleep = true, .has_remote_memory = true};
}

/// Two messages under way between two nodes at most, and many refusals.
World tiny_simulated() {
    const auto run = [](Node nodes, const conformance::Body& body) {
        device::simulated::Network network({.nodes = nodes, .seed = seed(), .refusal_chance = 0.3, .in_flight_max = 2});
        std::vector<std::unique_ptr<Channel>> channels;
        for (Node node = 0; node < nodes; ++node) channels.push_back(network.open(node));
        run_threads(std::move(channels), body);
    };
    return {.name = "tiny_simulated", .run = run};
}

} // namespace

std::vector<World> worlds() {
#if defined(KUMI_THREAD_SANITIZER) || defined(KUMI_ADDRESS_SANITIZER)
    // The same code over other wires; what sanitizers look for shows in these.
    constexpr std::array names{"shmem", "udp", "composite"};
#else
    constexpr std::array names{"simulated",   "shmem",     "shmem_processes",    "udp",
                               "udp_loss_10", "composite", "composite_networks", "composite_relays"};
#endif
    std::vector<World> chosen{tiny_shmem(), tiny_simulated()};
    for (World& world : conformance::worlds())
        if (std::ranges::find(names, world.name) != names.end()) chosen.push_back(std::move(world));
    return chosen;
}

} // namespace kumi::engine_test
