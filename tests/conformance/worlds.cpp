#include "conformance/world.hpp"
#include "loopback/composites.hpp"
#include "loopback/processes.hpp"
#include "simulation/seeds.hpp"
#include "skips.hpp"

#include "kumi/device/composite/composite.hpp"
#include "kumi/device/shmem/shmem.hpp"
#include "kumi/device/simulated/network.hpp"
#include "kumi/device/udp/udp.hpp"
#include "kumi/lab/network/namespaces.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>

namespace kumi::conformance {
namespace {

using Channels = std::vector<std::unique_ptr<pm::Channel>>;

void run_threads(Channels channels, const Body& body) {
    std::vector<std::thread> threads;
    for (auto& channel : channels) threads.emplace_back([&body, &channel] {
            body(*channel);
            channel.reset(); // it closes while the others go on
        });
    for (std::thread& thread : threads) thread.join();
}

World shmem_world(std::string name, base::Fencing fencing) {
    const auto run = [=](pm::Node nodes, const Body& body) {
        auto channels = device::shmem::open_in_one_process(nodes, {.fencing = fencing});
        ASSERT_TRUE(channels) << channels.error().text();
        run_threads(*std::move(channels), body);
    };
    return {.name = std::move(name),
            .run = run,
            .has_joint_sleep = true,
            .has_remote_memory = true};
}

/// Each node is a process, which opens its end itself.
World shmem_processes_world(std::string name, base::Fencing fencing) {
    const auto run_and_kill = [=](pm::Node nodes, const std::vector<pm::Node>& victims, const Body& body) {
        const auto make = [&](pm::Node) {
            return std::make_unique<device::shmem::ShmemDevice>(device::shmem::Options{.fencing = fencing});
        };
        loopback::run_and_kill(nodes, victims, make, body);
    };
    return {.name = std::move(name),
            .run = [=](pm::Node nodes, const Body& body) { run_and_kill(nodes, {}, body); },
            .has_joint_sleep = true,
            .has_remote_memory = true,
            .run_and_kill = run_and_kill,
            .delivers_for_the_dead = true};
}

World simulated_world() {
    const auto run = [](pm::Node nodes, const Body& body) {
        device::simulated::Network network({.nodes = nodes, .seed = seed()});
        Channels channels;
        for (pm::Node node = 0; node < nodes; ++node) channels.push_back(network.open(node));
        run_threads(std::move(channels), body);
    };
    return {.name = "simulated", .run = run};
}

/// All nodes on this host.
World udp_world(std::string name, device::udp::Options options) {
    const auto run = [=](pm::Node nodes, const Body& body) {
        device::udp::Options seeded = options;
        seeded.faults.seed = seed();
        auto channels = device::udp::open_in_one_process(std::vector<std::string>(nodes, "127.0.0.1"), seeded);
        ASSERT_TRUE(channels) << channels.error().text();
        run_threads(*std::move(channels), body);
    };
    return {.name = std::move(name), .run = run, .has_joint_sleep = true};
}

/// Each node is a process, which opens its end itself.
World udp_processes_world(std::string name, device::udp::Options options) {
    const auto run_and_kill = [=](pm::Node nodes, const std::vector<pm::Node>& victims, const Body& body) {
        device::udp::Options seeded = options;
        seeded.faults.seed = seed();
        const auto make = [&](pm::Node) { return std::make_unique<device::udp::UdpDevice>(seeded); };
        loopback::run_and_kill(nodes, victims, make, body);
    };
    return {.name = std::move(name),
            .run = [=](pm::Node nodes, const Body& body) { run_and_kill(nodes, {}, body); },
            .has_joint_sleep = true,
            .run_and_kill = run_and_kill};
}

/// Even nodes on one host, odd ones on another, joined by a link with an MTU of 1500.
World udp_hosts_world(std::string name, int family, device::udp::Options options) {
    const auto run = [=](pm::Node nodes, const Body& body) {
        if (const auto reason = probes::no_two_hosts()) KUMI_SKIP(*reason);
        if (family == 6 && !probes::has_ipv6()) KUMI_SKIP(skips::no_ipv6);
        auto hosts = lab::TwoHosts::make();
        ASSERT_TRUE(hosts) << hosts.error().text();
        device::udp::Options seeded = options;
        seeded.faults.seed = seed();
        std::vector<std::string> addresses;
        for (pm::Node node = 0; node < nodes; ++node)
            addresses.push_back(family == 4 ? hosts->address(node % 2) : hosts->address6(node % 2));
        auto channels =
            device::udp::open_in_one_process(addresses, seeded, [&](pm::Node node) { return hosts->enter(node % 2); });
        ASSERT_TRUE(channels) << channels.error().text();
        run_threads(*std::move(channels), body);
    };
    return {.name = std::move(name), .run = run, .has_joint_sleep = true};
}

World composite_world(std::string name, const std::function<loopback::Channels(pm::Node)>& open) {
    const auto run = [=](pm::Node nodes, const Body& body) { run_threads(open(nodes), body); };
    return {.name = std::move(name), .run = run, .has_joint_sleep = true};
}

/// Each node is a process. Nodes 0 and 1 are on one host: they have shared memory, and all nodes UDP.
World composite_processes_world() {
    const auto run_and_kill = [](pm::Node nodes, const std::vector<pm::Node>& victims, const Body& body) {
        const auto make = [&](pm::Node self) {
            const auto is_on_host = [](pm::Node node) { return node < 2; };
            std::vector<device::composite::Plan> plans(2);
            plans[0].name = "shmem";
            plans[1].name = "udp";
            for (pm::Node node = 0; node < nodes; ++node) {
                if (is_on_host(node)) plans[0].members.push_back(node);
                plans[1].members.push_back(node);
            }
            if (is_on_host(self))
                plans[0].device = std::make_unique<device::shmem::ShmemDevice>(device::shmem::Options{});
            plans[1].device = std::make_unique<device::udp::UdpDevice>(device::udp::Options{});
            const auto joins = [=](std::size_t plan, pm::Node to) {
                return plan == 1 || (is_on_host(self) && is_on_host(to));
            };
            return std::make_unique<device::composite::CompositeDevice>(std::move(plans), joins);
        };
        loopback::run_and_kill(nodes, victims, make, body);
    };
    return {.name = "composite_processes",
            .run = [=](pm::Node nodes, const Body& body) { run_and_kill(nodes, {}, body); },
            .has_joint_sleep = true,
            .run_and_kill = run_and_kill};
}

/// Of composites those with shared memory reach the memory of other nodes.
World with_memory(World world) {
    world.has_remote_memory = true;
    return world;
}

} // namespace

std::vector<World> worlds() {
    const device::udp::Faults little{.loss = 0.01};
    const device::udp::Faults much{
        .loss = 0.10, .duplicate = 0.01, .reorder = 0.02, .corrupt = 0.01, .truncate = 0.005};
    std::vector<World> all{
        simulated_world(),
        shmem_world("shmem", base::Fencing::by_reader),
        shmem_world("shmem_writer_fences", base::Fencing::by_writer),
        shmem_processes_world("shmem_processes", base::Fencing::by_reader),
        shmem_processes_world("shmem_processes_writer_fences", base::Fencing::by_writer),
        udp_world("udp", {}),
        udp_world("udp_encrypted", {.encrypt = true}),
        udp_world("udp_loss_1", {.faults = little}),
        udp_world("udp_loss_10", {.packet_bytes_max = 1472, .faults = much}),
        udp_processes_world("udp_processes", {}),
        udp_processes_world("udp_processes_encrypted_loss_1", {.encrypt = true, .faults = little}),
        composite_processes_world(),
        with_memory(composite_world("composite", loopback::two_hosts)),
        composite_world("composite_networks", [](pm::Node nodes) { return loopback::two_networks(nodes); }),
        composite_world("composite_rails", loopback::two_rails),
        composite_world("composite_relays", loopback::chain),
        udp_hosts_world("udp_hosts", 4, {}),
        udp_hosts_world("udp_hosts_v6", 6, {}),
        udp_hosts_world("udp_hosts_loss_1", 4, {.faults = little}),
        udp_hosts_world("udp_hosts_loss_10", 4, {.faults = much})};
#if defined(KUMI_THREAD_SANITIZER) || defined(KUMI_ADDRESS_SANITIZER)
    // The same code over other wires; what sanitizers look for shows in the ones above.
    std::erase_if(all, [](const World& world) {
        return world.name.starts_with("udp_hosts") || world.name == "udp_loss_1";
    });
#endif
    return all;
}

std::uint64_t seed() {
    static const std::uint64_t chosen = simulation::wanted_seeds(1).first;
    return chosen;
}

} // namespace kumi::conformance
