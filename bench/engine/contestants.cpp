#include "contestants.hpp"

#include "../jobs.hpp"
#include "../mpi.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

using Words = std::vector<std::string>;

constexpr const char* two_hosts = "two_hosts.toml";
constexpr const char* figure3 = "figure3.toml";

Entry kumi_entry(const BenchOptions& options, const EngineCase& one, const OwnLab* lab, const std::string& who) {
    const Words words{"engine", who == "limit" ? "limit" : one.what, one.place};
    Words run_options{"-n", std::to_string(one.nodes)};
    Entry entry{who, one.name(), {}};
    if (lab == nullptr) {
        entry.words = job_here(options, run_options, words);
        return entry;
    }
    const bool by_lan = one.what == "jacobi";
    if (by_lan) run_options.insert(run_options.end(), {"--place", "1-per-host"});
    entry.words = job_in_lab(options, *lab, by_lan ? "lan_only.toml" : lab_file(one), run_options, words);
    entry.environment = lab->environment();
    return entry;
}

/// How Open MPI may do remote memory; what it chooses by itself is not always its best, and fails between hosts.
std::vector<Words> window_settings(const std::string& peer, bool in_lab) {
    if (peer != "openmpi") return {{}};
    const Words by_ucx{"OMPI_MCA_pml=ucx", "OMPI_MCA_osc=ucx", "OMPI_MCA_opal_common_ucx_tls=any",
                       "OMPI_MCA_opal_common_ucx_devices=any"};
    if (in_lab) return {{"OMPI_MCA_osc=pt2pt"}, by_ucx};
    return {{}, {"OMPI_MCA_osc=sm"}};
}

std::vector<Entry> pair_entries(const BenchOptions& options, const EngineCase& one, const OwnLab* lab,
                                const std::string& peer) {
    const Words words{"onesided", one.place};
    const Entry entry = lab == nullptr ? mpi_here(options, peer, 2, true, words)
                                       : mpi_in_lab(options, *lab, peer, {"d0,d1", "2", "", words}, false);
    return in_settings(entry, window_settings(peer, lab != nullptr));
}

/// In the lab a process does not know with how many others it shares the machine, and must be told to yield.
std::vector<Entry> barrier_entries(const BenchOptions& options, const EngineCase& one, const OwnLab* lab,
                                   const std::string& peer) {
    const Words words{"barrier", one.rows.front().id};
    const bool bound = one.nodes <= 2;
    if (lab == nullptr) return in_settings(mpi_here(options, peer, one.nodes, bound, words), waiting_settings(peer));
    const MpiRun run{"a0:2,a1:2,a2:2,a3:2,b0,b1,b2,b3", std::to_string(one.nodes), "lan", words};
    std::vector<Entry> entries;
    for (const bool is_told : {false, true}) {
        entries.push_back(
            in_settings(mpi_in_lab(options, *lab, peer, run, is_told), {waiting_settings(peer).back()}).front());
        entries.back().who = fmt::format("{}#{}", peer, is_told ? "told" : "alone");
    }
    return entries;
}

std::vector<Entry> peer_entries(const BenchOptions& options, const EngineCase& one, const OwnLab* lab,
                                const std::string& peer) {
    if (one.what == "pair") return pair_entries(options, one, lab, peer);
    if (one.what == "barrier" && peer != "oshmem") return barrier_entries(options, one, lab, peer);
    return {};
}

} // namespace

std::string lab_file(const EngineCase& one) {
    if (one.place == "udp") return two_hosts;
    return one.what == "jacobi" || one.place.ends_with(".lab") ? figure3 : "";
}

std::vector<Entry> contestants(const BenchOptions& options, const EngineCase& one, const OwnLab* lab) {
    std::vector<Entry> entries{kumi_entry(options, one, lab, "kumi")};
    if (one.what == "pair") entries.push_back(kumi_entry(options, one, lab, "limit"));
    for (const std::string& peer : options.peers)
        for (Entry& entry : peer_entries(options, one, lab, peer)) {
            entry.what = one.name();
            entries.push_back(std::move(entry));
        }
    return entries;
}

} // namespace kumi::bench
