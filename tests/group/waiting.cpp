// Threads of one node that wait for each other's multicasts: whoever waits is woken, and what nobody waits for goes on.

#include "group/node.hpp"

#include <atomic>
#include <random>
#include <thread>

namespace kumi::group_test {
namespace {

using namespace std::chrono_literals;

class Waiting : public GroupTest {};

constexpr Duration until_all_sleep = 30ms;

/// Nobody wakes up by himself to look after others.
const Setup without_looks{.keepalive_every = 1h};

/// Much longer than it takes, and much shorter than a test may.
Instant soon() { return now() + 5s; }

TEST_P(Waiting, who_waits_for_a_multicast_is_woken_by_another_thread_of_its_node) {
    run(1, [](Channel& channel) {
        Member member;
        member.open(channel, without_looks);
        std::thread sender([&] {
            std::this_thread::sleep_for(until_all_sleep);
            // which the other one takes
            const auto missing = member.groups->multicast({0}, 7, bytes_of(std::string_view("words"))).get(soon());
            EXPECT_TRUE(missing && missing->empty());
        });
        const Instant end = soon();
        const auto arrival = member.groups->next(end);
        EXPECT_LT(now(), end) << "it slept to the end";
        sender.join();
        ASSERT_TRUE(arrival) << arrival.error().text();
        EXPECT_EQ(arrival->tag, 7u);
    });
}

TEST_P(Waiting, who_waits_for_the_end_of_a_multicast_is_woken_when_another_thread_takes_it) {
    run(1, [](Channel& channel) {
        Member member;
        member.open(channel, without_looks);
        auto done = member.groups->multicast({0}, 7, bytes_of(std::string_view("words")));
        std::thread taker([&] {
            std::this_thread::sleep_for(until_all_sleep);
            EXPECT_TRUE(member.groups->next(soon()));
        });
        const Instant end = soon();
        const auto missing = done.get(end);
        EXPECT_LT(now(), end) << "it slept to the end";
        taker.join();
        ASSERT_TRUE(missing) << missing.error().text();
        EXPECT_TRUE(missing->empty());
    });
}

TEST_P(Waiting, a_multicast_to_its_own_node_is_handled_though_that_only_computes) {
    run(1, [](Channel& channel) {
        Member member;
        std::atomic<int> handled = 0;
        const auto count = member.handlers.add("count", [&](Call&) { ++handled; });
        member.open(channel, without_looks);
        for (int i = 1; i <= 3; ++i) {
            std::this_thread::sleep_for(until_all_sleep);
            (void)member.groups->multicast({0}, count);
            for (const Instant end = soon(); handled < i && now() < end;) std::this_thread::yield(); // without a call
            EXPECT_EQ(handled, i);
        }
    });
}

TEST_P(Waiting, a_multicast_to_its_own_node_is_handled_though_that_has_just_waited_and_only_computes_now) {
    run(1, [](Channel& channel) {
        Member member;
        std::atomic<int> handled = 0;
        const auto count = member.handlers.add("count", [&](Call&) { ++handled; });
        member.open(channel, without_looks);
        for (int i = 1; i <= 30; ++i) {
            for (int waits = 0; waits < 3; ++waits) good(member.engine->barrier(soon()));
            (void)member.groups->multicast({0}, count);
            for (const Instant end = soon(); handled < i && now() < end;) std::this_thread::yield(); // without a call
            EXPECT_EQ(handled, i);
        }
    });
}

TEST_P(Waiting, one_that_never_ends_may_be_followed_by_another_when_the_job_ends) {
    run(1, [](Channel& channel) {
        int ended = 0;
        {
            Member member;
            const auto count = member.handlers.add("count", [&](Call&) {});
            member.open(channel);
            for (int i = 0; i < 20; ++i) {
                auto done = member.groups->multicast({0}, 7, bytes_of(std::string_view("nobody takes this")));
                (void)done.then([&, count](const Result<Set>& missing) { // when it is called `count` is gone
                    EXPECT_FALSE(missing);
                    ++ended;
                    expect_error(member.groups->multicast({0}, count).get(), {"multicast to 0", "has ended"});
                });
            }
        }
        EXPECT_EQ(ended, 20);
    });
}

TEST_P(Waiting, a_call_whose_deadline_is_hardly_too_short_is_complete_or_timed_out) {
    run_group(3, [](Member&, group::Group& all) {
        std::mt19937_64 random(seed() + all.rank());
        for (std::uint64_t i = 0; i < 200; ++i) {
            const auto time = std::chrono::microseconds(random() % 200);
            const auto sum = all.allreduce(i, group::sum, now() + time);
            if (sum) EXPECT_EQ(*sum, 3 * i);
            else EXPECT_EQ(sum.error().code(), ErrorCode::timed_out) << sum.error().text();
        }
        const auto last = all.allreduce(std::uint64_t{7}, group::sum, soon());
        EXPECT_TRUE(last && *last == 21) << (last ? "" : last.error().text()) << ": the calls are in step again";
    });
}

KUMI_ENGINE_WORLDS(Waiting);

} // namespace
} // namespace kumi::group_test
