#include "harness/job_bench.hpp"

#include "harness/jobs.hpp"
#include "harness/lab/own_labs.hpp"
#include "harness/mpi.hpp"

#include "kumi/base/system/machine.hpp"

#include <fmt/format.h>

namespace kumi::bench {
namespace {

constexpr std::chrono::seconds job_seconds_max{30};

/// The cases with a row that was asked for. Each keeps only such rows.
std::vector<JobCase> chosen_cases(const BenchOptions& options, std::vector<JobCase> cases) {
    for (JobCase& one : cases)
        std::erase_if(one.rows, [&](const RowKind& row) { return !is_asked_for(options, row.id); });
    std::erase_if(cases, [](const JobCase& one) { return one.rows.empty(); });
    return cases;
}

std::vector<RowKind> all_rows(const std::vector<JobCase>& cases) {
    std::vector<RowKind> rows;
    for (const JobCase& one : cases) rows.insert(rows.end(), one.rows.begin(), one.rows.end());
    return rows;
}

class Run {
public:
    Run(const BenchOptions& options, JobBench bench)
        : options_(options), bench_(std::move(bench)), cases_(chosen_cases(options, std::move(bench_.cases))),
          table_(all_rows(cases_), options.peers), stage_(table_, options.on_progress), labs_(options, table_) {
        options_.peers = peers_with_programs(options, table_);
        for (const JobCase& one : cases_) note_cores(one);
    }

    Table run() {
        for (int round = 0; round < options_.rounds; ++round) {
            stage_.begin_round(round + 1, options_.rounds);
            for (std::size_t i = 0; i < cases_.size(); ++i) {
                stage_.begin_case(i, cases_.size());
                measure(cases_[i], round);
            }
        }
        return std::move(table_);
    }

private:
    void note_cores(const JobCase& one) {
        const unsigned cores = base::cores_allowed();
        if (static_cast<unsigned>(one.nodes) > cores)
            table_.note(fmt::format("{}.{}: {} nodes on {} cores{}", bench_.name, one.name(), one.nodes, cores,
                                    bench_.crowded(one)));
    }

    void measure(const JobCase& one, int round) {
        const std::string file = bench_.lab_file(one);
        const OwnLab* const lab = file.empty() ? nullptr : labs_.of(file, one.name());
        if (!file.empty() && lab == nullptr) return;
        for (Entry& entry : in_turn(bench_.contestants(options_, one, lab), round)) {
            entry.what = one.name();
            const auto heard = stage_.run(entry, job_seconds_max);
            if (heard)
                for (const auto& [id, value] : heard->results) table_.add(entry.who, id, value);
            else if (entry.who == "kumi") // a peer keeps its values
                for (const RowKind& row : one.rows) table_.strike(entry.who, row.id);
        }
    }

    BenchOptions options_; // with the peers whose programs were found
    JobBench bench_;
    std::vector<JobCase> cases_;
    Table table_;
    Stage stage_;
    OwnLabs labs_;
};

} // namespace

Entry job_entry(const BenchOptions& options, const JobCase& one, const OwnLab* lab, const std::string& cluster_file,
                const std::vector<std::string>& words, const std::vector<std::string>& run_options) {
    std::vector<std::string> all{"-n", std::to_string(one.nodes)};
    all.insert(all.end(), run_options.begin(), run_options.end());
    if (lab == nullptr) return {"kumi", one.name(), job_here(options, all, words)};
    return {"kumi", one.name(), job_in_lab(options, *lab, cluster_file, all, words), lab->environment()};
}

Entry job_on_hosts(const BenchOptions& options, const JobCase& one, const OwnLab* lab, const std::string& cluster_file,
                   const std::vector<std::string>& words, const LabHosts& hosts) {
    std::vector<std::string> run_options;
    if (lab != nullptr) run_options = {"--hosts", hosts.list};
    return job_entry(options, one, lab, cluster_file, words, run_options);
}

std::vector<Entry> with_mpis(const BenchOptions& options, const JobCase& one, const OwnLab* lab,
                             const std::vector<std::string>& words, const LabHosts& hosts, std::vector<Entry> entries) {
    for (const std::string& peer : options.peers)
        for (Entry& entry : mpi_waiting(options, lab, peer, one.nodes, words, hosts))
            entries.push_back(std::move(entry));
    return entries;
}

Table run_job_bench(const BenchOptions& options, JobBench bench) { return Run(options, std::move(bench)).run(); }

std::vector<std::string> row_names(const std::vector<JobCase>& cases) {
    std::vector<std::string> names;
    for (const RowKind& row : all_rows(cases)) names.push_back(row.id);
    return names;
}

} // namespace kumi::bench
