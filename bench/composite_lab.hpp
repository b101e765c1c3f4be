#pragma once

// Who measures which row of `kumi bench composite` in a lab: command lines for Kumi and for MPIs.

#include "options.hpp"
#include "own_lab.hpp"
#include "stage.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

/// A job of Kumi's, started on the lab's front end: `kumi run OPTIONS kumi bench-node composite WORDS`.
std::vector<std::string> kumi_job(const BenchOptions& options, const OwnLab& lab, const std::string& cluster_file,
                                  const std::vector<std::string>& run_options, const std::vector<std::string>& words);

// The contestants of rows, by what they are after "composite.".
std::vector<Entry> failover_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> exchange_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> bulk_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> start_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);

/// A peer that was told which network to use.
inline std::string told(const std::string& peer) { return peer + "_told"; }

} // namespace kumi::bench
