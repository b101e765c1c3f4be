#pragma once

// A benchmark whose contestants are jobs of several nodes, of Kumi's or of an MPI's, on this machine and in labs.

#include "harness/options.hpp"
#include "harness/own_lab.hpp"
#include "harness/stage.hpp"
#include "harness/table.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

/// Rows that one run of a contestant measures together.
struct JobCase {
    std::string what;  // the nodes do: "pair", "barrier"
    std::string place; // "shmem", "udp"; or the number of nodes, with ".lab" behind it or not
    int nodes;
    std::vector<RowKind> rows;

    std::string name() const { return what + "." + place; }
};

struct JobBench {
    const char* name;
    std::vector<JobCase> cases;
    /// The cluster file of the lab that a case is measured in; empty: this machine does.
    std::string (*lab_file)(const JobCase& one);
    /// Command lines for Kumi, the limit and the peers, as far as they have a part in it. `lab` is null where none is
    /// needed.
    std::vector<Entry> (*contestants)(const BenchOptions& options, const JobCase& one, const OwnLab* lab);
    /// What else to know about a case with more nodes than cores.
    const char* (*crowded)(const JobCase& one) = [](const JobCase&) { return ""; };
};

inline constexpr const char* figure3 = "figure3.toml"; // the lab of many hosts

/// Kumi's part in a case: `words` are its nodes'. In the lab they are on hosts of that cluster file.
Entry job_entry(const BenchOptions& options, const JobCase& one, const OwnLab* lab, const std::string& cluster_file,
                const std::vector<std::string>& words, const std::vector<std::string>& run_options = {});

/// Measures the rows that were asked for, contestants interleaved round by round.
Table run_job_bench(const BenchOptions& options, JobBench bench);

std::vector<std::string> row_names(const std::vector<JobCase>& cases);

} // namespace kumi::bench
