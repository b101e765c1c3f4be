#pragma once

#include <cstdint>
#include <mpi.h>

namespace kumi::bench {

/// Returns the number of the first process at all processes.
inline std::int64_t as_first_says(std::int64_t mine) {
    MPI_Bcast(&mine, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    return mine;
}

} // namespace kumi::bench
