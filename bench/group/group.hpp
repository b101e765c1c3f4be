#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Measures multicasts to sets that are chosen at each call, beside broadcasts of MPIs in communicators, on this
/// machine and in a lab. In each round the contestants take turns.
Table run_group_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> group_rows();
/// What `--against` may name.
std::span<const char* const> group_peers() noexcept;

} // namespace kumi::bench
