#pragma once

#include "harness/options.hpp"
#include "harness/table.hpp"

#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

/// Measures Kumi over UDP beside bare sockets and other libraries, on a loopback and between two hosts joined by a veth
/// pair. In each round the contestants take turns.
Table run_udp_bench(const BenchOptions& options);

/// What `--rows` may name.
std::vector<std::string> udp_rows();
/// What `--against` may name.
std::span<const char* const> udp_peers() noexcept;

} // namespace kumi::bench
