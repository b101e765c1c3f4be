#include "patterns/patterns.hpp"

#include "patterns/cases.hpp"
#include "patterns/figures.hpp"

namespace kumi::bench {
namespace {

constexpr const char* peers_to_name[] = {"openmpi", "mpich"};

std::string lab_file(const JobCase& one) { return one.place.ends_with("lab") ? figure3 : ""; }

/// One message of PM between two nodes, under the name of a barrier's row.
Entry message_entry(const BenchOptions& options, JobCase one) {
    one.nodes = 2;
    Entry entry = job_entry(options, one, nullptr, "", {"patterns", "message", one.place});
    entry.who = "limit";
    return entry;
}

std::vector<Entry> contestants(const BenchOptions& options, const JobCase& one, const OwnLab* lab) {
    const std::vector<std::string> words{"patterns", one.what, one.place};
    const LabHosts hosts = patterns_hosts_of(one);
    std::vector<Entry> entries{job_on_hosts(options, one, lab, lab_file(one), words, hosts)};
    if (one.what != "barrier") return with_mpis(options, one, lab, words, hosts, std::move(entries));
    entries.push_back(message_entry(options, one));
    return with_mpis(options, one, lab, {"barrier", one.rows.front().id}, hosts, std::move(entries));
}

} // namespace

Table run_patterns_bench(const BenchOptions& options) {
    Table table = run_job_bench(options, {"patterns", patterns_cases(), lab_file, contestants});
    if (!options.figures_folder.empty()) draw_patterns(options, table);
    return table;
}

std::vector<std::string> patterns_rows() { return row_names(patterns_cases()); }

std::span<const char* const> patterns_peers() noexcept { return peers_to_name; }

} // namespace kumi::bench
