#include "composite_lab.hpp"

namespace kumi::bench {
namespace {

using Words = std::vector<std::string>;

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

Entry kumi_entry(const BenchOptions& options, const OwnLab& lab, const std::string& who,
                 const std::string& cluster_file, const Words& run_options, const Words& words) {
    return {who, words.front(), kumi_job(options, lab, cluster_file, run_options, words), lab.environment()};
}

/// One run of an MPI program in the lab.
struct MpiRun {
    std::string hosts; // "a0:2,b0"
    std::string nodes;
    std::string interface; // which it is told to use, when it is told
    Words words;           // of the program
};

/// The launcher talks by the LAN, when it is told: the only network that joins all hosts.
Words openmpi_words(const OwnLab& lab, const MpiRun& run, bool is_told) {
    // Two hosts of the lab are one machine, and mpirun would bind their first processes to the same core.
    Words words{"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none",    "--mca",
                "plm_rsh_agent",  lab.agent(),           "--host",    run.hosts, "-n",
                run.nodes};
    if (is_told) append(words, {"--mca", "oob_tcp_if_include", "lan", "--mca", "btl_tcp_if_include", run.interface});
    return words;
}

Words mpich_words(const OwnLab& lab, const MpiRun& run, bool is_told) {
    Words words{"mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", lab.agent(),
                "-hosts",        run.hosts,   "-n",  run.nodes};
    // Which of the two counts depends on how it was built.
    if (is_told)
        append(words, {"-iface", "lan", "-genv", "UCX_NET_DEVICES", run.interface, "-genv",
                       "MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", run.interface});
    return words;
}

/// The peers that are to be measured, as they are and told.
std::vector<Entry> mpi_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what,
                               const MpiRun& run) {
    std::vector<Entry> entries;
    for (const std::string& peer : options.peers)
        for (const bool is_told : {false, true}) {
            Words words = peer == "openmpi" ? openmpi_words(lab, run, is_told) : mpich_words(lab, run, is_told);
            words.push_back(options.peers_folder + "/kumi-bench-" + peer);
            append(words, run.words);
            entries.push_back({is_told ? told(peer) : peer, what, lab.on("front", words), lab.environment()});
        }
    return entries;
}

} // namespace

Words kumi_job(const BenchOptions& options, const OwnLab& lab, const std::string& cluster_file,
               const Words& run_options, const Words& words) {
    // Hosts of the lab are one machine, and each would bind its first node to the same core.
    Words all{options.own_path,
              "run",
              "--no-bind",
              "--rsh",
              options.own_path + " lab exec",
              "--cluster",
              options.labs_folder + "/" + cluster_file};
    append(all, run_options);
    append(all, {"--", options.own_path, "bench-node", "composite"});
    append(all, words);
    return lab.on("front", all);
}

std::vector<Entry> failover_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    return {kumi_entry(options, lab, "kumi", "two_networks.toml", {"--hosts", "c0,c1", "-n", "2"}, {what, "fast"})};
}

std::vector<Entry> exchange_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    return {kumi_entry(options, lab, "kumi", "figure3.toml", {"-n", "12"}, {what}),
            kumi_entry(options, lab, "lan", "lan_only.toml", {"-n", "12"}, {what})};
}

std::vector<Entry> bulk_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    std::vector<Entry> entries =
        mpi_entries(options, lab, what, {"a0,a1", "2", "myrinet", {"net", "bulk", "composite." + what}});
    entries.push_back(kumi_entry(options, lab, "kumi", "figure3.toml", {"--hosts", "a0,a1", "-n", "2"}, {what}));
    return entries;
}

std::vector<Entry> start_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    std::vector<Entry> entries =
        mpi_entries(options, lab, what, {"a0:2,a1:2,a2:2,a3:2,b0,b1,b2,b3", "12", "lan", {"join"}});
    entries.push_back(kumi_entry(options, lab, "kumi", "figure3.toml", {"-n", "12"}, {what}));
    return entries;
}

} // namespace kumi::bench
