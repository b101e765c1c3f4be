#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

namespace kumi::bench {

/// Draws a picture of each pattern that was measured: Kumi and its peers, and what the papers say.
void draw_patterns(const BenchOptions& options, Table& table);

} // namespace kumi::bench
