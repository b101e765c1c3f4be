#include "simulated/simulation.hpp"

#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>

namespace kumi::bench {
namespace {

namespace sg = simgrid::s4u;

// Approximate costs of MPI on a Cray XC30. A message of up to 9000 bytes is sent eagerly and copied on both sides. A
// larger message needs a rendezvous, which takes three latencies instead of one, and is not copied.
constexpr const char* costs_of_mpi[] = {
    "smpi/os:0:2e-7:1e-10;9000:2e-7:0",
    "smpi/ois:0:2e-7:1e-10;9000:2e-7:0",
    "smpi/or:0:2e-7:5e-11;9000:2e-7:0",
    "smpi/lat-factor:0:1;9000:3",
    "smpi/async-small-thresh:9000",
    "smpi/send-is-detached-thresh:9000",
};

// Everything else takes no time: neither the programs themselves nor calls that only test. Networks are as fast as the
// machine says.
constexpr const char* other_settings[] = {
    "smpi/simulate-computation:no",
    "smpi/cpu-threshold:-1",
    "smpi/wtime:0",
    "smpi/test:0",
    "smpi/bw-factor:0:1",
    "network/crosstraffic:0",
    "network/weight-S:0",
    "network/TCP-gamma:0",
    // For calls that are not measured but must end soon. The defaults of SimGrid take linear time.
    "smpi/allgather:bruck",
    "smpi/allgatherv:ompi_bruck",
    "smpi/barrier:ompi_bruck",
    "smpi/allreduce:rdb",
    "smpi/reduce:binomial",
    "contexts/stack-size:256",
};

void set(const std::string& setting) { sg::Engine::set_config(setting); }

} // namespace

void simulate(const Machine& machine, const std::string& bcast, const std::function<void(int rank)>& run) {
    std::string name = "kumi-bench-simulated", quiet = "--log=root.thres:warning";
    char* arguments[] = {name.data(), quiet.data(), nullptr};
    int count = 2;
    sg::Engine engine(&count, arguments);
    set("network/model:SMPI");
    smpi_init_options(); // from here on SimGrid knows its settings
    for (const char* const setting : costs_of_mpi) set(setting);
    for (const char* const setting : other_settings) set(setting);
    set("smpi/bcast:" + bcast);
    SMPI_init();
    const std::vector<sg::Host*> hosts = build(machine);
    SMPI_app_instance_register("ranks", nullptr, static_cast<int>(hosts.size()));
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        const sg::ActorPtr actor = sg::Actor::init("rank" + std::to_string(rank), hosts[rank]);
        actor->set_property("instance_id", "ranks");
        actor->set_property("rank", std::to_string(rank));
        actor->start([&run, rank] {
            MPI_Init(nullptr, nullptr);
            run(static_cast<int>(rank));
            MPI_Finalize();
        });
    }
    engine.run();
    fail("the simulation came to a halt: all ranks wait");
}

void sleep(double seconds) { sg::this_actor::sleep_for(seconds); }

void end() {
    std::fflush(stdout);
    std::_Exit(0);
}

void fail(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::_Exit(1);
}

} // namespace kumi::bench
