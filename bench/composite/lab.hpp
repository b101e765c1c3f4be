#pragma once

// Who measures which row of `kumi bench composite` in a lab: command lines for Kumi and for MPIs.

#include "harness/options.hpp"
#include "harness/own_lab.hpp"
#include "harness/stage.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

// The contestants of rows, by what they are after "composite.".
std::vector<Entry> failover_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> exchange_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> bulk_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> start_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);

} // namespace kumi::bench
