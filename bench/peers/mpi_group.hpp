#pragma once

#include <string>

namespace kumi::bench {

/// What bench/group does, with communicators: "multicast", "create" or "allreduce". Answers an exit code.
int mpi_group(const std::string& what, const std::string& place);

} // namespace kumi::bench
