#pragma once

// A benchmark whose contestants are jobs of several nodes, of Kumi or of an MPI, on this machine and in labs.

#include "harness/lab/own_lab.hpp"
#include "harness/mpi.hpp"
#include "harness/options.hpp"
#include "harness/stage.hpp"
#include "harness/table.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

/// Rows that one run of a contestant measures together.
struct JobCase {
    std::string what;  // what the nodes do: "pair", "barrier"
    std::string place; // "shmem", "udp"; or the number of nodes, as "4" or "12.lab"
    int nodes;
    std::vector<RowKind> rows;

    std::string name() const { return what + "." + place; }
};

struct JobBench {
    const char* name;
    std::vector<JobCase> cases;
    /// The cluster file of the lab that a case is measured in; empty: it needs no lab.
    std::string (*lab_file)(const JobCase& one);
    /// The command lines of Kumi, of the limit and of the peers, as far as they can do the case. `lab` is null if the
    /// case needs none.
    std::vector<Entry> (*contestants)(const BenchOptions& options, const JobCase& one, const OwnLab* lab);
    /// A remark for a case with more nodes than cores.
    const char* (*crowded)(const JobCase& one) = [](const JobCase&) { return ""; };
};

inline constexpr const char* figure3 = "figure3.toml"; // the lab of many hosts

/// The entry of Kumi in a case. `words` are those of its nodes. In a lab the nodes run on the hosts of `cluster_file`.
Entry job_entry(const BenchOptions& options, const JobCase& one, const OwnLab* lab, const std::string& cluster_file,
                const std::vector<std::string>& words, const std::vector<std::string>& run_options = {});

/// The same for hosts that are told; on this machine, where `lab` is null, they do not count.
Entry job_on_hosts(const BenchOptions& options, const JobCase& one, const OwnLab* lab, const std::string& cluster_file,
                   const std::vector<std::string>& words, const LabHosts& hosts);

/// `entries`, and those of the MPIs that the options name, in each of their waiting settings.
std::vector<Entry> with_mpis(const BenchOptions& options, const JobCase& one, const OwnLab* lab,
                             const std::vector<std::string>& words, const LabHosts& hosts, std::vector<Entry> entries);

/// Measures the rows that were asked for. In each round the contestants take turns.
Table run_job_bench(const BenchOptions& options, JobBench bench);

std::vector<std::string> row_names(const std::vector<JobCase>& cases);

} // namespace kumi::bench
