#pragma once

#include <cstdint>
#include <mpi.h>
#include <vector>

namespace kumi::bench {

inline int own_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

inline int world_size() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/// Returns the number of the first process at all processes.
inline std::int64_t as_first_says(std::int64_t mine) {
    MPI_Bcast(&mine, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    return mine;
}

/// A communicator of these ranks, in this order. Other processes take no part.
inline MPI_Comm communicator_of(const std::vector<int>& ranks) {
    MPI_Group world, some;
    MPI_Comm communicator;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &communicator);
    MPI_Group_free(&some);
    MPI_Group_free(&world);
    return communicator;
}

} // namespace kumi::bench
