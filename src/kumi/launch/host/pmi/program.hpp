#pragma once

#include <string>

namespace kumi::launch::host {

/// What a program may ask its launcher for MPI.
enum class MpiNeed {
    none,  // it is a Kumi program
    pmi,   // PMI-1, as MPICH does
    maybe, // both: it may start or load anything, as shells and Python do
    pmix   // it uses Open MPI, which cannot do without PMIx
};

/// Looks into a program's file: what it links is named there.
MpiNeed mpi_need_of(const std::string& path);

} // namespace kumi::launch::host
