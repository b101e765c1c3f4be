#include "composite/lab.hpp"

#include "harness/jobs.hpp"
#include "harness/mpi.hpp"
#include "harness/words.hpp"

namespace kumi::bench {
namespace {

Entry kumi_entry(const BenchOptions& options, const OwnLab& lab, const std::string& who,
                 const std::string& cluster_file, const Words& run_options, Words words) {
    const std::string what = words.front();
    words.insert(words.begin(), "composite");
    return {who, what, job_in_lab(options, lab, cluster_file, run_options, words), lab.environment()};
}

/// The entries of the peers: each once left to itself, and once told which network to use.
std::vector<Entry> mpi_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what,
                               const MpiRun& run) {
    std::vector<Entry> entries;
    for (const std::string& peer : options.peers)
        for (const bool is_told : {false, true}) {
            entries.push_back(mpi_in_lab(options, lab, peer, run, is_told));
            entries.back().what = what;
        }
    return entries;
}

} // namespace

std::vector<Entry> failover_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    return {kumi_entry(options, lab, "kumi", "two_networks.toml", {"--hosts", "c0,c1", "-n", "2"}, {what, "fast"})};
}

std::vector<Entry> exchange_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    return {kumi_entry(options, lab, "kumi", "figure3.toml", {"-n", "12"}, {what}),
            kumi_entry(options, lab, "lan", "lan_only.toml", {"-n", "12"}, {what})};
}

std::vector<Entry> wire_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    return {kumi_entry(options, lab, "kumi", "wire.toml", {"-n", "8"}, {what}),
            {"limit", what, {options.node_path, "node", "composite", what, "limit"}}};
}

std::vector<Entry> bulk_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    std::vector<Entry> entries =
        mpi_entries(options, lab, what, {"a0,a1", "2", "myrinet", {"net", "bulk", "composite." + what}});
    entries.push_back(kumi_entry(options, lab, "kumi", "figure3.toml", {"--hosts", "a0,a1", "-n", "2"}, {what}));
    return entries;
}

std::vector<Entry> stripes_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    std::vector<Entry> entries;
    for (const bool is_striped : {true, false})
        entries.push_back(kumi_entry(options, lab, is_striped ? "kumi" : "limit", what + ".toml",
                                     {"-n", "2", "-x", is_striped ? "KUMI_STRIPES=yes" : "KUMI_STRIPES=no"}, {what}));
    return entries;
}

std::vector<Entry> start_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what) {
    std::vector<Entry> entries =
        mpi_entries(options, lab, what, {"a0:2,a1:2,a2:2,a3:2,b0,b1,b2,b3", "12", "lan", {"join"}});
    entries.push_back(kumi_entry(options, lab, "kumi", "figure3.toml", {"-n", "12"}, {what}));
    return entries;
}

} // namespace kumi::bench
