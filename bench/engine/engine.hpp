#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// The engine beside PM, on which it stands, and beside MPI's and OpenSHMEM's remote memory and barriers: on this
/// machine and in labs, interleaved round by round.
Table run_engine_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> engine_rows();
/// What `--against` may name.
std::span<const char* const> engine_peers() noexcept;

} // namespace kumi::bench
