// Messages of the program and Kumi's pass beside each other, on the very communicator that was joined by.

#include "conformance/world.hpp"
#include "kumi/device/mpi/mpi.hpp"
#include "kumi/pm/wait.hpp"
#include "mpi/ranks.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace kumi::mpi_test {
namespace {

using conformance::deadline;

/// Both directions at once: messages of every size class with tags that Kumi uses too, received from anybody with any
/// tag.
TEST(Foreign, messages_of_the_program_and_kumis_pass_beside_each_other) {
    on_first_ranks(2, [](MPI_Comm comm) {
        constexpr int rounds = 300;
        constexpr int sizes[] = {0, 16, 1000, 4032, 70'000};
        const int other = 1 - rank();
        auto channel = device::mpi::open(comm);
        ASSERT_TRUE(channel) << channel.error().text();
        std::uint64_t next = 0;
        const auto check = [&](pm::Message& message) {
            std::uint64_t number = 0;
            ASSERT_TRUE(read_value(message.bytes(), number));
            EXPECT_EQ(number, next++);
            EXPECT_EQ(message.bytes().size(), number % 7 == 0 ? 50'000u : 24u);
        };
        for (int round = 0; round < rounds; ++round) {
            const int bytes = sizes[round % 5], tag = round % 40;
            const std::vector<char> out(static_cast<std::size_t>(bytes), static_cast<char>('a' + round % 26));
            std::vector<char> in(100'000);
            MPI_Request requests[2];
            MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                      &requests[0]);
            std::vector<std::byte> ours(round % 7 == 0 ? 50'000 : 24);
            const auto number = static_cast<std::uint64_t>(round);
            std::memcpy(ours.data(), &number, sizeof number);
            ASSERT_TRUE(pm::poll_until(
                **channel, check, [&] { return (*channel)->try_send(static_cast<pm::Node>(other), ours); }, {},
                deadline()));
            MPI_Isend(out.data(), bytes, MPI_BYTE, other, tag, comm, &requests[1]);
            (*channel)->poll(check, pm::all_messages);
            MPI_Status statuses[2];
            MPI_Waitall(2, requests, statuses);
            int got = 0;
            MPI_Get_count(&statuses[0], MPI_BYTE, &got);
            ASSERT_EQ(got, bytes);
            EXPECT_EQ(statuses[0].MPI_TAG, tag);
            EXPECT_EQ(statuses[0].MPI_SOURCE, other);
            in.resize(static_cast<std::size_t>(got));
            EXPECT_EQ(in, out);
        }
        EXPECT_TRUE(pm::poll_until(**channel, check, [&] { return next == rounds; }, {}, deadline()));
    });
}

} // namespace
} // namespace kumi::mpi_test
