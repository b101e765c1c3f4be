#include "harness/mpi.hpp"

#include "harness/peer_program.hpp"
#include "harness/words.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

std::string program_of(const BenchOptions& options, const std::string& peer) {
    return options.peers_folder + "/kumi-bench-" + peer;
}

/// If it is told, the launcher uses the LAN, the only network that joins all hosts.
Words openmpi_words(const OwnLab& lab, const MpiRun& run, bool is_told) {
    // The hosts of a lab are one machine. mpirun would bind the first process of each host to the same core.
    Words words{"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none",    "--mca",
                "plm_rsh_agent",  lab.agent(),           "--host",    run.hosts, "-n",
                run.nodes};
    if (is_told) append(words, {"--mca", "oob_tcp_if_include", "lan", "--mca", "btl_tcp_if_include", run.interface});
    return words;
}

Words mpich_words(const OwnLab& lab, const MpiRun& run, bool is_told) {
    Words words{"mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", lab.agent(),
                "-hosts",        run.hosts,   "-n",  run.nodes};
    // Which of the two variables counts depends on how MPICH was built.
    if (is_told)
        append(words, {"-iface", "lan", "-genv", "UCX_NET_DEVICES", run.interface, "-genv",
                       "MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", run.interface});
    return words;
}

} // namespace

Words peers_with_programs(const BenchOptions& options, Table& table) {
    Words present;
    for (const std::string& peer : options.peers) {
        if (const auto program = peer_program(options.peers_folder, peer)) present.push_back(peer);
        else table.note(fmt::format("{}: not measured: {}", peer, program.error().text()));
    }
    return present;
}

Entry mpi_here(const BenchOptions& options, const std::string& peer, int nodes, bool bound, const Words& words) {
    const std::string count = std::to_string(nodes);
    Words all{"mpiexec.mpich", "-n", count};
    if (peer != "mpich") all = {"mpirun.openmpi", "-n", count, "--oversubscribe", "--bind-to", bound ? "core" : "none"};
    else if (bound) append(all, {"-bind-to", "core"});
    all.push_back(program_of(options, peer));
    append(all, words);
    return {peer, words.front(), all, {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}};
}

Entry mpi_in_lab(const BenchOptions& options, const OwnLab& lab, const std::string& peer, const MpiRun& run,
                 bool is_told) {
    Words words = peer == "mpich" ? mpich_words(lab, run, is_told) : openmpi_words(lab, run, is_told);
    words.push_back(program_of(options, peer));
    append(words, run.words);
    return {is_told ? told(peer) : peer, run.words.front(), lab.on("front", words), lab.environment()};
}

std::vector<Entry> in_settings(const Entry& entry, const std::vector<Words>& settings) {
    std::vector<Entry> entries;
    for (const Words& setting : settings) {
        Entry one = entry;
        one.who = fmt::format("{}#{}", entry.who, entries.size());
        append(one.environment, setting);
        entries.push_back(std::move(one));
    }
    return entries;
}

std::vector<Words> waiting_settings(const std::string& peer) {
    if (peer == "openmpi") return {{}, {"OMPI_MCA_mpi_yield_when_idle=1"}};
    return {{}, {"MPIR_CVAR_POLLS_BEFORE_YIELD=1"}};
}

std::vector<Entry> mpi_waiting(const BenchOptions& options, const OwnLab* lab, const std::string& peer, int nodes,
                               const Words& words, const LabHosts& hosts) {
    const std::vector<Words> settings = waiting_settings(peer);
    if (lab == nullptr) return in_settings(mpi_here(options, peer, nodes, nodes <= 2, words), settings);
    // In a lab a process does not know how many others share the machine, and must be told to yield.
    const MpiRun run{hosts.list, std::to_string(nodes), hosts.interface, words};
    std::vector<Entry> entries;
    for (const bool is_told : {false, true}) {
        entries.push_back(in_settings(mpi_in_lab(options, *lab, peer, run, is_told), {settings.back()}).front());
        entries.back().who = fmt::format("{}#{}", peer, is_told ? "told" : "alone");
    }
    return entries;
}

} // namespace kumi::bench
