#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Measures nodes that communicate in patterns of the papers: pairs at once, two senders to one receiver, barriers,
/// nodes placed in different ways on hosts, overlapping multicasts.
Table run_patterns_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> patterns_rows();
/// What `--against` may name.
std::span<const char* const> patterns_peers() noexcept;

} // namespace kumi::bench
