#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// What the composite costs beside the bare devices that it is made of; and, in labs that are made for it, what it does
/// when networks fail, what the best networks bring, and how MPIs do with several networks.
Table run_composite_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> composite_rows();
/// What `--against` may name.
std::span<const char* const> composite_peers() noexcept;

} // namespace kumi::bench
