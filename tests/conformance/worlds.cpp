#include "conformance/world.hpp"

#include "kumi/base/memory_policy.hpp"
#include "kumi/device/shmem/shmem.hpp"
#include "kumi/device/simulated/network.hpp"
#include "kumi/device/udp/udp.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

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

/// Each end in a process of its own; the others' ends are dead memory there.
void run_processes(Channels channels, const Body& body) {
    std::fflush(nullptr); // or each child prints it again
    std::vector<pid_t> processes;
    for (auto& channel : channels) {
        const pid_t pid = ::fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            base::register_for_heavy_fence();
            body(*channel);
            std::fflush(nullptr);
            ::_exit(testing::Test::HasFailure() ? 1 : 0);
        }
        processes.push_back(pid);
    }
    for (std::size_t node = 0; node < processes.size(); ++node) {
        int status = 0;
        ::waitpid(processes[node], &status, 0);
        EXPECT_EQ(status, 0) << "the process of node " << node << " failed";
    }
}

World shmem_world(std::string name, base::Fencing fencing, bool threads) {
    const auto run = [=](pm::Node nodes, const Body& body) {
        auto channels = device::shmem::open_in_one_process(nodes, {.fencing = fencing});
        ASSERT_TRUE(channels) << channels.error().text();
        threads ? run_threads(*std::move(channels), body) : run_processes(*std::move(channels), body);
    };
    return {std::move(name), run};
}

World simulated_world() {
    const auto run = [](pm::Node nodes, const Body& body) {
        device::simulated::Network network({.nodes = nodes, .seed = seed()});
        Channels channels;
        for (pm::Node node = 0; node < nodes; ++node) channels.push_back(network.open(node));
        run_threads(std::move(channels), body);
    };
    return {"simulated", run};
}

World udp_world(std::string name, const std::string& address, const device::udp::Options& options) {
    const auto run = [=](pm::Node nodes, const Body& body) {
        device::udp::Options seeded = options;
        seeded.faults.seed = seed();
        auto channels = device::udp::open_in_one_process(std::vector<std::string>(nodes, address), seeded);
        ASSERT_TRUE(channels) << channels.error().text();
        run_threads(*std::move(channels), body);
    };
    return {std::move(name), run};
}

} // namespace

std::vector<World> worlds() {
    return {simulated_world(), shmem_world("shmem", base::Fencing::by_reader, true),
            shmem_world("shmem_writer_fences", base::Fencing::by_writer, true),
            shmem_world("shmem_processes", base::Fencing::by_reader, false),
            shmem_world("shmem_processes_writer_fences", base::Fencing::by_writer, false),
            udp_world("udp", "127.0.0.1", {}),
            udp_world("udp_v6_small_packets", "::1", {.packet_bytes_max = 1232}),
            udp_world("udp_encrypted", "127.0.0.1", {.encrypt = true}),
            udp_world("udp_loss_1", "127.0.0.1", {.packet_bytes_max = 1472, .faults = {.loss = 0.01}}),
            udp_world("udp_loss_10", "127.0.0.1",
                      {.packet_bytes_max = 1472,
                       .faults = {.loss = 0.10, .duplicate = 0.01, .reorder = 0.02, .corrupt = 0.01, .truncate = 0.005}})};
}

std::uint64_t seed() {
    static const std::uint64_t chosen = [] {
        if (const char* text = std::getenv("KUMI_SEED")) return static_cast<std::uint64_t>(std::strtoull(text, nullptr, 10));
        return static_cast<std::uint64_t>(std::random_device{}());
    }();
    return chosen;
}

} // namespace kumi::conformance
