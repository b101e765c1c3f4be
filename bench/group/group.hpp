#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Multicasts to sets that are chosen as one goes, beside MPI's broadcasts in communicators: on this machine and in a
/// lab, interleaved round by round.
Table run_group_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> group_rows();
/// What `--against` may name.
std::span<const char* const> group_peers() noexcept;

} // namespace kumi::bench
