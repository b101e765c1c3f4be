#include "kumi/device/mpi/requests.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>

namespace kumi::device::mpi {

Part::Part(std::uint32_t first, std::uint32_t count) : first_(first), count_(count) {
    for (std::uint32_t index = first; index < end(); ++index) free_.push(index);
}

std::uint32_t Part::take() noexcept {
    KUMI_ASSERT(has_free());
    const std::uint32_t index = free_.top();
    free_.pop();
    return index;
}

Requests::Requests(std::uint32_t count) : requests_(count, MPI_REQUEST_NULL), indices_(count), statuses_(count) {}

MPI_Request* Requests::begin(std::uint32_t index) noexcept {
    KUMI_ASSERT(requests_[index] == MPI_REQUEST_NULL);
    used_ = std::max<std::size_t>(used_, index + 1);
    return &requests_[index];
}

std::size_t Requests::collect(bool waits, Completed completed) noexcept {
    int count = 0;
    const auto some = waits ? MPI_Waitsome : MPI_Testsome;
    some(static_cast<int>(used_), requests_.data(), &count, indices_.data(), statuses_.data());
    if (count <= 0) return 0; // MPI_UNDEFINED: none is under way
    for (int i = 0; i < count; ++i) completed(static_cast<std::uint32_t>(indices_[i]), statuses_[i]);
    while (used_ > 0 && requests_[used_ - 1] == MPI_REQUEST_NULL) --used_;
    return static_cast<std::size_t>(count);
}

} // namespace kumi::device::mpi
