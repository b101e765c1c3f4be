#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Measures the engine beside PM, which it uses, and beside the remote memory and barriers of MPIs and OpenSHMEM, on
/// this machine and in labs. In each round the contestants take turns.
Table run_engine_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> engine_rows();
/// What `--against` may name.
std::span<const char* const> engine_peers() noexcept;

} // namespace kumi::bench
