#pragma once

#include <string>

namespace kumi::bench {

/// Two processes. The first uses a window of the second, and reports. Returns an exit code.
int mpi_onesided(const std::string& place);

} // namespace kumi::bench
