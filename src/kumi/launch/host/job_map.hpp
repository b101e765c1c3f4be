#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kumi::launch::host {

/// One host's part of a job: nodes whose numbers are in a row.
struct Part {
    std::string host;
    std::uint32_t first = 0;
    std::uint32_t count = 1;
};

/// The index of the part that `node` belongs to. Requires that `parts` has all nodes of a job, the lowest first.
std::size_t part_of(const std::vector<Part>& parts, std::uint32_t node) noexcept;

/// The hosts of a job, and which of them this one is: what MPI processes are told.
struct JobMap {
    const Part& here() const { return parts[own]; }
    std::uint32_t nodes() const { return parts.back().first + parts.back().count; }

    std::string name; // of the job, which no other has
    std::vector<Part> parts;
    std::size_t own = 0;
    bool mpi_over_kumi = false; // see JobOptions
};

} // namespace kumi::launch::host
