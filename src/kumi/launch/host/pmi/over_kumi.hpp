#pragma once

#include "kumi/base/result.hpp"

#include <string>
#include <vector>

namespace kumi::launch::host {

/// The variables, "NAME=value", with which Open MPI runs over Kumi: by the libfabric provider that is installed with
/// this program. An error if it is not.
Result<std::vector<std::string>> variables_for_mpi_over_kumi();

} // namespace kumi::launch::host
