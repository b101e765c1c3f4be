#pragma once

#include <string>

namespace kumi::bench {

/// Two processes: the first uses a window of the second, and reports. Answers an exit code.
int mpi_onesided(const std::string& place);

} // namespace kumi::bench
