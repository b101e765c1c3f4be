#pragma once

#include <string>

namespace kumi::bench {

/// The cases of bench/group with communicators: "multicast", "create", "allreduce" or "alltoallv". Returns an exit
/// code.
int mpi_group(const std::string& what, const std::string& place);

} // namespace kumi::bench
