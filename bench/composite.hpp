#pragma once

#include "options.hpp"
#include "table.hpp"

namespace kumi::bench {

/// What the composite costs beside the bare devices that it is made of.
Table run_composite_bench(const BenchOptions& options);

} // namespace kumi::bench
