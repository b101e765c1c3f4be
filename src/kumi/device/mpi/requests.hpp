#pragma once

// MPI's requests in one table, so that one call checks all of them. An index is free, or has a request under way.

#include "kumi/base/function_ref.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mpi.h>
#include <queue>
#include <vector>

namespace kumi::device::mpi {

/// A range of indices of the table. Free ones are handed out lowest first, so that the used table stays short.
class IndexPool {
public:
    IndexPool(std::uint32_t first, std::uint32_t count);

    bool has_free() const noexcept { return !free_.empty(); }
    /// Requires has_free().
    std::uint32_t take() noexcept;
    void give_back(std::uint32_t index) noexcept { free_.push(index); }

    std::uint32_t first() const noexcept { return first_; }
    std::uint32_t end() const noexcept { return first_ + count_; }
    bool has(std::uint32_t index) const noexcept { return index >= first_ && index < end(); }

private:
    std::uint32_t first_;
    std::uint32_t count_;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
};

class Requests {
public:
    /// With `one_at_a_time`, collect() reports at most one request.
    explicit Requests(std::uint32_t count, bool one_at_a_time);

    /// The request at `index`, for an MPI call that starts it.
    MPI_Request* begin(std::uint32_t index) noexcept;
    MPI_Request& at(std::uint32_t index) noexcept { return requests_[index]; }

    using Completed = base::FunctionRef<void(std::uint32_t index, const MPI_Status& status)>;
    /// Reports the requests that have completed; with `waits`, blocks until one has. Returns their number.
    std::size_t collect(bool waits, Completed completed) noexcept;

private:
    int collect_some(bool waits) noexcept;
    int collect_one(bool waits) noexcept;

    std::vector<MPI_Request> requests_;
    std::size_t used_ = 0; // one after the last request that is under way
    bool one_at_a_time_;
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
};

} // namespace kumi::device::mpi
