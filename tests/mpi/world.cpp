#include "conformance/world.hpp"

#include "engine/node.hpp"
#include "kumi/device/mpi/mpi.hpp"
#include "mpi/ranks.hpp"
#include "simulation/seeds.hpp"

#include <cstdlib>
#include <gtest/gtest.h>

namespace kumi::conformance {

std::vector<World> worlds() {
    const auto run = [](pm::Node nodes, const Body& body) {
        mpi_test::on_first_ranks(static_cast<int>(nodes), [&](MPI_Comm comm) {
            auto channel =
                device::mpi::open(comm, {.sleeps_in_mpi = std::getenv("KUMI_TEST_SLEEPS_IN_MPI") != nullptr});
            ASSERT_TRUE(channel) << channel.error().text();
            body(**channel);
            channel->reset(); // it closes while the others go on
        });
    };
    return {{.name = "mpi", .run = run, .told_max = std::chrono::seconds(10)}}; // ranks spin, and wait for a core
}

/// The same on all ranks.
std::uint64_t seed() {
    static const std::uint64_t chosen = [] {
        std::uint64_t value = simulation::wanted_seeds(1).first;
        MPI_Bcast(&value, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        return value;
    }();
    return chosen;
}

} // namespace kumi::conformance

namespace kumi::engine_test {

std::vector<World> worlds() { return conformance::worlds(); }

} // namespace kumi::engine_test
