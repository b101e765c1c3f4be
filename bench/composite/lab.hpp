#pragma once

// The contestants of rows of `kumi bench composite` in a lab: command lines of Kumi and of MPIs.

#include "harness/lab/own_lab.hpp"
#include "harness/options.hpp"
#include "harness/stage.hpp"

#include <string>
#include <vector>

namespace kumi::bench {

// Each returns the contestants of a row; `what` is the name of the row without "composite.".
std::vector<Entry> failover_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> exchange_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
/// The limit is the time of the cable.
std::vector<Entry> wire_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> bulk_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
/// With stripes, and with one network ("limit").
std::vector<Entry> stripes_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);
std::vector<Entry> start_entries(const BenchOptions& options, const OwnLab& lab, const std::string& what);

} // namespace kumi::bench
