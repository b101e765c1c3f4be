#pragma once

#include "harness/lab/own_lab.hpp"
#include "harness/options.hpp"
#include "harness/table.hpp"

#include <map>
#include <string>

namespace kumi::bench {

/// The labs of a benchmark. Each lab comes up when it is first needed and stays until everything is measured.
class OwnLabs {
public:
    OwnLabs(const BenchOptions& options, Table& table)
        : folder_(options.labs_folder), kumi_path_(options.kumi_path), table_(table) {}

    /// The lab of a cluster file. Null if it cannot be made; the table then has a note for `row`.
    const OwnLab* of(const std::string& file, const std::string& row);

private:
    std::string folder_;
    std::string kumi_path_;
    Table& table_;
    std::map<std::string, Result<OwnLab>> labs_; // by cluster file
};

} // namespace kumi::bench
