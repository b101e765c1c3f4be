#include "group/group.hpp"

#include "group/cases.hpp"

namespace kumi::bench {
namespace {

constexpr const char* peers_to_name[] = {"openmpi", "mpich"};

std::string lab_file(const JobCase& one) { return one.place.ends_with(".lab") ? figure3 : ""; }

std::vector<Entry> contestants(const BenchOptions& options, const JobCase& one, const OwnLab* lab) {
    const std::vector<std::string> words{"group", one.what, one.place};
    const LabHosts hosts = lab_hosts_of(one);
    std::vector<Entry> entries{job_on_hosts(options, one, lab, lab_file(one), words, hosts)};
    if (one.what == "master") return entries; // MPI has no such call
    return with_mpis(options, one, lab, words, hosts, std::move(entries));
}

} // namespace

Table run_group_bench(const BenchOptions& options) {
    return run_job_bench(options, {"group", group_cases(), lab_file, contestants});
}

std::vector<std::string> group_rows() { return row_names(group_cases()); }

std::span<const char* const> group_peers() noexcept { return peers_to_name; }

} // namespace kumi::bench
