#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Measures the cost of the composite beside the devices that it is made of; and, in labs, the pause when a network
/// fails, the gain of the best networks, and MPIs with several networks.
Table run_composite_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> composite_rows();
/// What `--against` may name.
std::span<const char* const> composite_peers() noexcept;

} // namespace kumi::bench
