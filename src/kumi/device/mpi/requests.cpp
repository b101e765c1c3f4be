#include "kumi/device/mpi/requests.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>

namespace kumi::device::mpi {

IndexPool::IndexPool(std::uint32_t first, std::uint32_t count) : first_(first), count_(count) {
    for (std::uint32_t index = first; index < end(); ++index) free_.push(index);
}

std::uint32_t IndexPool::take() noexcept {
    KUMI_ASSERT(has_free());
    const std::uint32_t index = free_.top();
    free_.pop();
    return index;
}

Requests::Requests(std::uint32_t count, bool one_at_a_time)
    : requests_(count, MPI_REQUEST_NULL), one_at_a_time_(one_at_a_time), indices_(count), statuses_(count) {}

MPI_Request* Requests::begin(std::uint32_t index) noexcept {
    KUMI_ASSERT(requests_[index] == MPI_REQUEST_NULL);
    used_ = std::max<std::size_t>(used_, index + 1);
    return &requests_[index];
}

int Requests::collect_some(bool waits) noexcept {
    int count = 0;
    const auto some = waits ? MPI_Waitsome : MPI_Testsome;
    some(static_cast<int>(used_), requests_.data(), &count, indices_.data(), statuses_.data());
    return count;
}

int Requests::collect_one(bool waits) noexcept {
    int is_there = 1;
    if (waits) MPI_Waitany(static_cast<int>(used_), requests_.data(), indices_.data(), statuses_.data());
    else MPI_Testany(static_cast<int>(used_), requests_.data(), indices_.data(), &is_there, statuses_.data());
    return is_there != 0 && indices_[0] != MPI_UNDEFINED ? 1 : 0;
}

std::size_t Requests::collect(bool waits, Completed completed) noexcept {
    const int count = one_at_a_time_ ? collect_one(waits) : collect_some(waits);
    if (count <= 0) return 0; // MPI_UNDEFINED: none is under way
    const auto ended = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < ended; ++i) completed(static_cast<std::uint32_t>(indices_[i]), statuses_[i]);
    while (used_ > 0 && requests_[used_ - 1] == MPI_REQUEST_NULL) --used_;
    return ended;
}

} // namespace kumi::device::mpi
