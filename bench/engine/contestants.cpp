#include "engine/contestants.hpp"

#include "harness/mpi.hpp"
#include "harness/words.hpp"

namespace kumi::bench {
namespace {

constexpr const char* two_hosts = "two_hosts.toml";

Entry kumi_entry(const BenchOptions& options, const JobCase& one, const OwnLab* lab, const std::string& who) {
    const bool by_lan = one.what == "jacobi";
    Entry entry = job_entry(options, one, lab, by_lan ? "lan_only.toml" : engine_lab_file(one),
                            {"engine", who == "limit" ? "limit" : one.what, one.place},
                            by_lan ? Words{"--place", "1-per-host"} : Words{});
    entry.who = who;
    return entry;
}

/// Settings of remote memory for Open MPI. Its own choice is not always its best, and fails between hosts.
std::vector<Words> window_settings(const std::string& peer, bool in_lab) {
    if (peer != "openmpi") return {{}};
    const Words by_ucx{"OMPI_MCA_pml=ucx", "OMPI_MCA_osc=ucx", "OMPI_MCA_opal_common_ucx_tls=any",
                       "OMPI_MCA_opal_common_ucx_devices=any"};
    if (in_lab) return {{"OMPI_MCA_osc=pt2pt"}, by_ucx};
    return {{}, {"OMPI_MCA_osc=sm"}};
}

std::vector<Entry> pair_entries(const BenchOptions& options, const JobCase& one, const OwnLab* lab,
                                const std::string& peer) {
    const Words words{"onesided", one.place};
    const Entry entry = lab == nullptr ? mpi_here(options, peer, 2, true, words)
                                       : mpi_in_lab(options, *lab, peer, {"d0,d1", "2", "", words}, false);
    return in_settings(entry, window_settings(peer, lab != nullptr));
}

std::vector<Entry> peer_entries(const BenchOptions& options, const JobCase& one, const OwnLab* lab,
                                const std::string& peer) {
    if (one.what == "pair") return pair_entries(options, one, lab, peer);
    if (one.what == "barrier" && peer != "oshmem")
        return mpi_waiting(options, lab, peer, one.nodes, {"barrier", one.rows.front().id});
    return {};
}

} // namespace

std::string engine_lab_file(const JobCase& one) {
    if (one.place == "udp") return two_hosts;
    return one.what == "jacobi" || one.place.ends_with(".lab") ? figure3 : "";
}

std::vector<Entry> engine_contestants(const BenchOptions& options, const JobCase& one, const OwnLab* lab) {
    std::vector<Entry> entries{kumi_entry(options, one, lab, "kumi")};
    if (one.what == "pair") entries.push_back(kumi_entry(options, one, lab, "limit"));
    for (const std::string& peer : options.peers)
        for (Entry& entry : peer_entries(options, one, lab, peer)) entries.push_back(std::move(entry));
    return entries;
}

} // namespace kumi::bench
