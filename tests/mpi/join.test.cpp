// A job inside a program that MPI has started, beside the program's own MPI calls.

#include "conformance/world.hpp"
#include "kumi/functions.hpp"
#include "kumi/mpi.hpp"
#include "mpi/ranks.hpp"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

namespace kumi::mpi_test {
namespace {

using namespace std::chrono_literals;
using conformance::deadline;

bool has_many_threads() {
    int level = 0;
    MPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

TEST(Join, active_messages_and_barriers_go_beside_the_programs_own_collectives) {
    on_first_ranks(6, [](MPI_Comm comm) {
        std::atomic<long> sum{0};
        Handlers handlers;
        const auto add = handlers.add("add", [&](Call&, long value) { sum += value; });
        auto job = mpi::join(comm, std::move(handlers));
        ASSERT_TRUE(job) << job.error().text();
        EXPECT_EQ(job->nodes(), 6u);
        EXPECT_EQ(job->node(), static_cast<Node>(rank()));
        long expected = 0;
        for (long round = 1; round <= 100; ++round) {
            for (Node to = 0; to < 6; ++to) ASSERT_TRUE(job->send(to, add, round * (rank() + 1)));
            ASSERT_TRUE(job->sync());
            const auto met = job->barrier(deadline()); // without a background, who is inside MPI handles nothing
            ASSERT_TRUE(met) << met.error().text();
            expected += round * 21;
            EXPECT_EQ(sum.load(), expected);
            long mine = round, all = 0;
            MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, comm); // nor does anybody go on before all have looked
            EXPECT_EQ(all, 6 * round);
        }
    });
}

TEST(Join, multicasts_go_the_way_that_is_asked_for) {
    on_first_ranks(6, [](MPI_Comm comm) {
        const std::vector<std::byte> content(10'000, std::byte{5});
        for (const group::Way way : {group::Way::binomial, group::Way::scatter_ring}) {
            auto job =
                mpi::join(comm, {},
                          {.groups = {.costs = group::Costs{.overhead_us = 2, .latency_us = 3, .us_per_byte = 0.004},
                                      .way = way}});
            ASSERT_TRUE(job) << job.error().text();
            EXPECT_EQ(job->groups().choice(content.size(), 6).way, way);
            EXPECT_EQ(job->groups().costs().latency_us, 3);
            std::optional<Future<Set>> done;
            if (job->node() == 0) done = job->multicast({0, 1, 2, 3, 4, 5}, 7, content);
            const auto arrival = job->next_multicast(deadline());
            ASSERT_TRUE(arrival) << arrival.error().text();
            EXPECT_EQ(arrival->content, content);
            EXPECT_TRUE(!done || done->get(deadline()));
            EXPECT_TRUE(job->barrier(deadline()));
        }
    });
}

TEST(Join, clusters_are_told_by_all_or_by_none) {
    on_first_ranks(6, [](MPI_Comm comm) {
        std::atomic<long> sum{0};
        Handlers handlers;
        const auto add = handlers.add("add", [&](Call&, long value) { sum += value; });
        auto job = mpi::join(comm, std::move(handlers), {.cluster = static_cast<std::uint32_t>(rank() % 2)});
        ASSERT_TRUE(job) << job.error().text();
        const auto missing = job->multicast(Set::range(0, 6), add, 7L).get(deadline());
        ASSERT_TRUE(missing) << missing.error().text();
        EXPECT_TRUE(missing->empty()) << missing->text();
        ASSERT_TRUE(job->barrier(deadline()));
        EXPECT_EQ(sum.load(), 6 * 7);
    });
    on_first_ranks(3, [](MPI_Comm comm) {
        mpi::Options options;
        if (rank() != 1) options.cluster = 0;
        const auto job = mpi::join(comm, {}, options);
        ASSERT_FALSE(job);
        EXPECT_NE(job.error().text().find("is told its cluster, and node"), std::string::npos) << job.error().text();
    });
}

TEST(Join, memory_of_other_nodes_is_reached) {
    on_first_ranks(3, [](MPI_Comm comm) {
        auto job = mpi::join(comm);
        ASSERT_TRUE(job) << job.error().text();
        constexpr std::size_t count = 300'000;
        auto segment = job->memory().segment<std::uint32_t>(count);
        ASSERT_TRUE(segment) << segment.error().text();
        std::vector<std::uint32_t> numbers(count);
        std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(rank()));
        const auto next = static_cast<Node>((rank() + 1) % 3);
        ASSERT_TRUE(job->memory().put(segment->at(next), numbers));
        ASSERT_TRUE(job->sync());
        ASSERT_TRUE(job->barrier(deadline()));
        std::vector<std::uint32_t> got(count);
        ASSERT_TRUE(job->memory().get(segment->at(next), std::span(got)));
        EXPECT_EQ(got, numbers);
        EXPECT_EQ(segment->local()[5], static_cast<std::uint32_t>((rank() + 2) % 3) + 5);
        ASSERT_TRUE(job->barrier(deadline()));
    });
}

TEST(Join, a_node_that_computes_answers_where_mpi_allows_a_thread_for_that) {
    on_first_ranks(2, [](MPI_Comm comm) {
        std::atomic<bool> is_computing{true};
        Handlers handlers;
        const auto ask = handlers.function("ask", [&] { return is_computing.load(); });
        auto job = mpi::join(comm, std::move(handlers));
        ASSERT_TRUE(job) << job.error().text();
        ASSERT_TRUE(job->barrier(deadline()));
        if (rank() == 0) {
            std::this_thread::sleep_for(100ms); // not together with the barrier's last message
            const auto answer = job->invoke(1, ask).get();
            ASSERT_TRUE(answer) << answer.error().text();
            EXPECT_EQ(*answer, has_many_threads());
        } else {
            std::this_thread::sleep_for(600ms);
            is_computing = false;
        }
        ASSERT_TRUE(job->barrier(deadline()));
    });
}

/// Leaving waits for two seconds, so the rest of it is left to MPI_Finalize; another job goes on meanwhile.
TEST(Join, a_node_may_leave_long_before_the_others_and_what_it_sent_arrives) {
    on_first_ranks(3, [](MPI_Comm comm) {
        std::atomic<int> received{0};
        Handlers handlers;
        const auto take = handlers.add(
            "take", [&](Call&, int, std::span<const std::byte> bytes) { received += bytes.size() == 100'000 ? 1 : 0; });
        auto job = mpi::join(comm, std::move(handlers));
        ASSERT_TRUE(job) << job.error().text();
        if (rank() == 0) {
            const std::vector<std::byte> content(100'000);
            for (int i = 0; i < 20; ++i)
                for (const Node to : {1u, 2u}) ASSERT_TRUE(job->send(to, take, i, Bytes(content)));
            return;
        }
        std::this_thread::sleep_for(1s);
        EXPECT_TRUE(job->wait_until([&] { return received == 20; }, deadline()));
        std::this_thread::sleep_for(3s);
    });
    on_first_ranks(2, [](MPI_Comm comm) {
        auto job = mpi::join(comm);
        ASSERT_TRUE(job) << job.error().text();
        EXPECT_TRUE(job->barrier(deadline()));
    });
}

TEST(Join, a_process_is_in_several_jobs_at_once) {
    on_first_ranks(4, [](MPI_Comm comm) {
        MPI_Comm half = MPI_COMM_NULL;
        MPI_Comm_split(comm, rank() % 2, rank(), &half);
        auto all = mpi::join(comm);
        ASSERT_TRUE(all) << all.error().text();
        auto some = mpi::join(half);
        ASSERT_TRUE(some) << some.error().text();
        MPI_Comm_free(&half);
        EXPECT_EQ(some->nodes(), 2u);
        EXPECT_EQ(some->node(), static_cast<Node>(rank() / 2));
        EXPECT_TRUE(some->barrier(deadline()));
        EXPECT_TRUE(all->barrier(deadline()));
    });
}

TEST(Join, what_is_no_communicator_of_one_group_is_refused_in_one_line) {
    EXPECT_EQ(refusal_before_init(), "joining by MPI: MPI is not initialized; call MPI_Init_thread first");
    on_first_ranks(2, [](MPI_Comm comm) {
        const auto none = mpi::join(MPI_COMM_NULL);
        ASSERT_FALSE(none);
        EXPECT_EQ(none.error().text(),
                  "joining by MPI: this is MPI_COMM_NULL; only members of a communicator join by it");
        MPI_Comm inter = MPI_COMM_NULL;
        MPI_Intercomm_create(MPI_COMM_SELF, 0, comm, 1 - rank(), 7, &inter);
        const auto between = mpi::join(inter);
        ASSERT_FALSE(between);
        EXPECT_EQ(between.error().text(),
                  "joining by MPI: this is an intercommunicator; merge it with MPI_Intercomm_merge first");
        MPI_Comm_free(&inter);
    });
}

TEST(Join, nodes_with_different_handlers_are_refused) {
    on_first_ranks(2, [](MPI_Comm comm) {
        Handlers handlers;
        if (rank() == 0) handlers.add("only here", [](Call&) {});
        const auto job = mpi::join(comm, std::move(handlers));
        ASSERT_FALSE(job);
        EXPECT_NE(job.error().text().find("only here"), std::string::npos) << job.error().text();
    });
}

} // namespace
} // namespace kumi::mpi_test
