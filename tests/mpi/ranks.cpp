#include "mpi/ranks.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <thread>

namespace kumi::mpi_test {
namespace {

/// Waits for all ranks without spinning.
int sum_over_ranks(int value) {
    int sum = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    for (int is_done = 0; MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), is_done == 0;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return sum;
}

/// The first `count` ranks; MPI_COMM_NULL on others. Made once for each count: ranks spin while MPI makes one, and here
/// they are more than cores. Every rank asks for the same counts in the same order.
MPI_Comm first_ranks(int count) {
    static std::map<int, MPI_Comm> made;
    const auto [place, is_new] = made.try_emplace(count, MPI_COMM_NULL);
    if (is_new) MPI_Comm_split(MPI_COMM_WORLD, rank() < count ? 0 : MPI_UNDEFINED, rank(), &place->second);
    return place->second;
}

} // namespace

int rank() {
    int number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    return number;
}

void on_first_ranks(int count, const std::function<void(MPI_Comm)>& body) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ASSERT_GE(ranks, count) << "start this with more ranks";
    if (const MPI_Comm some = first_ranks(count); some != MPI_COMM_NULL) body(some);
    const bool has_failed = testing::Test::HasFailure();
    const int failed = sum_over_ranks(has_failed ? 1 : 0);
    if (rank() == 0 && !has_failed) {
        EXPECT_EQ(failed, 0) << "ranks failed; they say why";
    }
}

} // namespace kumi::mpi_test
