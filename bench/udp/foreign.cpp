#include "udp/foreign.hpp"

#include "contestant/processes.hpp"
#include "contestant/work.hpp"
#include "harness/command.hpp"
#include "harness/peer_program.hpp"
#include "harness/words.hpp"

#include "kumi/base/system/descriptor.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace kumi::bench {
namespace {

/// A program on one side of the network.
Part program_on(const Network& network, unsigned side, Words words) {
    return {[&network, side, words] {
                if (auto done = network.enter(side); !done) return fail(done.error());
                return become(words);
            },
            side};
}

/// Runs iperf3 as a client. Tries again while the server is not ready.
Result<std::string> ask_iperf3(const std::string& address) {
    constexpr int attempts_max = 40;
    for (int attempt = 1;; ++attempt) {
        auto said = output_of({"iperf3", "--client", address, "--time", "1", "--json"}, {}, std::chrono::seconds(8));
        if (said || attempt == attempts_max) return said;
        std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
}

int run_iperf3(const Task& task, const Network& network) {
    const auto client = [&] {
        if (auto done = network.enter(0); !done) return fail(done.error());
        const auto said = ask_iperf3(network.address(1));
        if (!said) return fail(said.error());
        const auto figures = nlohmann::json::parse(*said, nullptr, false);
        const nlohmann::json::json_pointer received("/end/sum_received/bits_per_second");
        if (figures.is_discarded() || !figures.contains(received))
            return fail(error("iperf3: its answer has no figure"));
        report(task.row().c_str(), figures[received].get<double>() / 8e6);
        return 0;
    };
    return run_parts({{client, 0}, program_on(network, 1, {"iperf3", "--server", "--bind", network.address(1)})});
}

/// Runs the program for a library on both sides: side 1 takes messages and reports, side 0 sends.
int run_library(const Task& task, const Network& network, const std::string& program) {
    const std::string address = network.address(1);
    return run_parts({program_on(network, 1, {program, "take", address, task.row()}),
                      program_on(network, 0, {program, "give", address})});
}

/// The script that mpirun calls to start its daemon on side 1. The script is in memory, so that no file is left behind.
/// It gives side 1 a host name of its own, because Open MPI identifies hosts by their names.
Result<base::Descriptor> remote_shell(const Network& network) {
    const base::Descriptor writable(::memfd_create("kumi-bench-rsh", MFD_CLOEXEC));
    const std::string script = fmt::format("#!/bin/sh\nshift\nexec nsenter --net={} unshare --uts sh -c "
                                           "'hostname kumi-host-1; exec sh -c \"$0\"' \"$*\"\n",
                                           network.path(1));
    if (!writable || ::write(writable.get(), script.data(), script.size()) < 0)
        return system_error(errno, "writing a script for mpirun");
    // A script that is open for writing does not run.
    base::Descriptor readable(::open(fmt::format("/proc/self/fd/{}", writable.get()).c_str(), O_RDONLY | O_CLOEXEC));
    if (!readable) return system_error(errno, "opening a script for mpirun");
    return readable;
}

int run_openmpi(const Task& task, const Network& network, const std::string& program) {
    const auto shell = remote_shell(network);
    if (!shell) return fail(shell.error());
    Words words{"mpirun.openmpi",
                "-n",
                "2",
                "--oversubscribe",
                "--bind-to",
                "none",
                "--mca",
                "pml",
                "ob1",
                "--mca",
                "btl",
                "tcp,self",
                "--mca",
                "btl_tcp_if_include",
                network.interface(),
                "--mca",
                "oob_tcp_if_include",
                network.interface()};
    if (!network.is_loopback())
        words.insert(words.end(), {"--host", fmt::format("{}:1,{}:1", network.address(0), network.address(1)), "--mca",
                                   "plm_rsh_agent", fmt::format("/proc/{}/fd/{}", ::getpid(), shell->get())});
    words.insert(words.end(), {program, "net", task.what, task.row()});
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    Part part = program_on(network, 0, words);
    part.core.reset(); // the ranks bind themselves
    return run_parts({part});
}

} // namespace

int run_foreign(const Task& task, const Network& network) {
    if (task.who == "iperf3") return run_iperf3(task, network);
    const auto program = peer_program(task.peers_folder, task.who);
    if (!program) return fail(program.error());
    if (task.who == "openmpi") return run_openmpi(task, network, *program);
    return run_library(task, network, *program);
}

} // namespace kumi::bench
