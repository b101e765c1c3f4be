// What group/starting.hpp promises: each test is one promise, in every world. Whole jobs in one thread, by seed, are in
// group/started.cpp.

#include "group/node.hpp"
#include "group/together.hpp"

#include "kumi/group/mail/mailbox.hpp"
#include "kumi/group/started/started_calls.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <thread>

namespace kumi::group_test {
namespace {

using group::Group;
using namespace std::chrono_literals;

class StartingPromises : public GroupTest {};

/// Waits without a call of the engine.
template <class T>
bool is_ready_soon(const Future<T>& future, Duration most = 20s) {
    for (const Instant end = now() + most; !future.is_ready() && now() < end;) std::this_thread::sleep_for(1ms);
    return future.is_ready();
}

// ---- what they answer

TEST_P(StartingPromises, answer_what_blocking_ones_do) {
    run_group(4, [](Member&, Group& group) {
        for (int what = 0; what < Together::whats; ++what)
            for (const std::size_t count : {std::size_t{3}, std::size_t{9000}})
                for (const group::Order order : {group::Order::tree, group::Order::by_rank}) {
                    const Together one{static_cast<Together::What>(what), static_cast<Node>(what % 4), count, order, 5};
                    EXPECT_TRUE(good(one.start(group).get(deadline()))) << one.text();
                }
        EXPECT_EQ(good(group.start().allreduce(group.rank() + 1, group::sum).get(deadline())), 10u);
        const auto larger = +[](const int& a, const int& b) { return a < b ? b : a; };
        EXPECT_EQ(good(group.start().allreduce(int(group.rank()), larger).get(deadline())), 3);
    });
}

TEST_P(StartingPromises, end_though_no_thread_waits) {
    run_group(3, [](Member&, Group& group) {
        good(group.barrier(deadline()));
        std::vector<std::uint64_t> values(60'000, group.rank()), sums(values.size());
        auto reduced = group.start().allreduce(values, sums, group::sum);
        EXPECT_TRUE(is_ready_soon(reduced));
        good(reduced.get());
        EXPECT_EQ(sums, std::vector<std::uint64_t>(sums.size(), 3));
        // All sleep when the last one arrives at a barrier.
        if (group.rank() == 2) std::this_thread::sleep_for(100ms);
        auto late = group.start().barrier();
        EXPECT_TRUE(is_ready_soon(late));
        good(late.get());
    });
}

TEST_P(StartingPromises, are_driven_by_what_comes_and_by_the_loss_of_a_member_though_no_thread_waits) {
    run(2, [](Channel& channel) {
        Member member;
        member.open(channel, {.keepalive_every = 60s});
        Group group = good(member.groups->group({0, 1}));
        good(group.barrier(deadline()));
        if (channel.self() == 1) std::this_thread::sleep_for(50ms); // until the other one sleeps
        std::vector<int> all(2);
        const std::vector<int> mine(1);
        auto first = group.start().allgather(mine, all);
        EXPECT_TRUE(is_ready_soon(first));
        good(first.get());
        if (channel.self() == 1) return;
        auto gathered = group.start().allgather(mine, all);
        EXPECT_TRUE(is_ready_soon(gathered));
        expect_code(gathered.get(), ErrorCode::node_lost, {"allgather among 0-1: node 1"});
    });
}

TEST_P(StartingPromises, on_one_set_are_made_in_the_order_in_which_they_were_started) {
    run_group(3, [](Member&, Group& group) {
        constexpr std::uint32_t count = 40;
        std::vector<std::uint32_t> order;
        std::deque<std::vector<std::uint32_t>> values;
        std::vector<Future<void>> ends;
        for (std::uint32_t i = 0; i < count; ++i) {
            auto& one = values.emplace_back(i % 7 == 0 ? 30'000 : 1, group.rank() == i % 3 ? i : 0);
            ends.push_back(group.start().broadcast(i % 3, one).then([&order, i](const Result<void>& done) {
                EXPECT_TRUE(done);
                order.push_back(i);
            }));
        }
        // A blocking call is made after those.
        EXPECT_EQ(good(group.allreduce(1u, group::sum, deadline())), 3u);
        EXPECT_TRUE(std::ranges::all_of(ends, [](const Future<void>& end) { return end.is_ready(); }));
        ASSERT_EQ(order.size(), count);
        EXPECT_TRUE(std::ranges::is_sorted(order));
        for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(values[i], std::vector(values[i].size(), i));
    });
}

TEST_P(StartingPromises, on_different_sets_do_not_wait_for_each_other) {
    run(2, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group both = good(member.groups->group({0, 1})), alone = good(member.groups->group({channel.self()}));
        auto never_yet = both.start().barrier();
        good(alone.start().barrier().get(deadline()));
        good(alone.barrier(deadline()));
        good(never_yet.get(deadline()));
        settle(*member.engine);
    });
}

TEST_P(StartingPromises, may_be_started_by_handlers_and_by_what_is_given_to_then) {
    run(3, [](Channel& channel) {
        Member member;
        std::optional<Group> group;
        std::atomic<int> total = 0;
        std::function<void(int)> next = [&](int left) {
            (void)group->start().allreduce(1, group::sum).then([&, left](const Result<int>& sum) {
                EXPECT_TRUE(sum);
                total += sum ? *sum : 0;
                if (left > 1) next(left - 1);
            });
        };
        const auto go = member.handlers.add("go", [&](Call&) {
            expect_code(group->barrier(), ErrorCode::misuse, {"barrier among 0-2: a handler must not wait", "start()"});
            next(400);
        });
        member.open(channel);
        group = good(member.groups->group(Set::range(0, 3)));
        meet(member);
        good(member.engine->send(channel.self(), go));
        EXPECT_TRUE(member.engine->wait_until([&] { return total == 1200; }, deadline()));
        settle(*member.engine);
    });
}

// ---- misuse

TEST_P(StartingPromises, one_thread_at_a_time_is_in_a_call_on_a_set_also_behind_others) {
    run_group(2, [](Member& member, Group& group) {
        std::vector<int> values(4), others(4);
        if (group.rank() == 0) {
            constexpr std::string_view another = "another thread is in a call on this set";
            for (const bool is_behind : {false, true}) {
                std::optional<Future<void>> before;
                if (is_behind) before = group.start().broadcast(1, values);
                std::atomic<bool> begins = false;
                std::thread other([&] {
                    begins = true;
                    good(group.broadcast(1, others, deadline()));
                });
                while (!begins) std::this_thread::yield();
                std::this_thread::sleep_for(50ms);
                std::vector<int> more(4);
                expect_code(group.start().broadcast(1, more).get(deadline()), ErrorCode::misuse,
                            {"broadcast among 0-1", another});
                expect_code(group.broadcast(1, more, deadline()), ErrorCode::misuse, {"broadcast among 0-1", another});
                expect_code(group.barrier(deadline()), ErrorCode::misuse, {"barrier among 0-1", another});
                meet(member); // now node 1 comes
                other.join();
                if (before) good(before->get(deadline()));
            }
        } else {
            for (const int calls : {1, 2}) {
                meet(member);
                for (int i = 0; i < calls; ++i) good(group.broadcast(1, values, deadline()));
            }
        }
    });
}

TEST_P(StartingPromises, that_cannot_be_are_errors_at_once) {
    run_group(2, [](Member&, Group& group) {
        std::vector<int> values(4), few(1);
        auto bad = group.start().broadcast(2, values);
        ASSERT_TRUE(bad.is_ready());
        expect_code(bad.get(), ErrorCode::not_found, {"broadcast among 0-1: there is no rank 2", "0 to 1"});
        // Members that come with different sizes, or different calls, are told.
        auto differing = group.start().allreduce(group.rank() == 0 ? values : few,
                                                 group.rank() == 0 ? values : few, group::sum);
        expect_code(differing.get(deadline()), ErrorCode::misuse, {"allreduce among 0-1", "bytes"});
        const auto throwing = [](const int&, const int&) -> int { throw std::runtime_error("no such sum"); };
        expect_code(group.start().allreduce(values, values, throwing).get(deadline()), ErrorCode::refused,
                    {"allreduce among 0-1: the operation threw on", "no such sum"});
        good(group.start().barrier().get(deadline()));
        auto other = group.rank() == 0 ? group.start().barrier() : group.start().broadcast(0, values);
        expect_code(other.get(deadline()), ErrorCode::misuse, {"has called"});
    });
}

TEST_P(StartingPromises, that_a_member_has_no_memory_for_are_errors_at_all_that_need_it) {
    // After such an error a set cannot be used again: one for each case.
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        const Node self = channel.self();
        std::vector<std::uint64_t> few(3, 1), result(3);
        // Never looked at: a vector cannot have as many bytes, or twice as many.
        const std::span<std::uint64_t> most(few.data(), std::size_t{1} << 60), half(few.data(), std::size_t{1} << 59);
        const auto check = [&](const Result<void>& done) {
            expect_code(done, ErrorCode::no_memory, {"has no memory for the call"});
        };
        if (self != 2) // in the steps
            check(good(member.groups->group({0, 1}))
                      .allreduce(self == 0 ? most : std::span(few), self == 0 ? most : std::span(result), group::sum,
                                 deadline(), group::Order::by_rank));
        if (self != 0) // before the steps, and after another error
            check(good(member.groups->group({1, 2}))
                      .scatter(0, few, self == 1 ? half : std::span(result), deadline()));
        if (self != 1) {
            const std::span<std::uint64_t> mine = self == 0 ? most : std::span(few);
            const std::span<std::uint64_t> into = self == 0 ? most : std::span(result);
            auto started = good(member.groups->group({0, 2}))
                               .start()
                               .allreduce(mine, into, group::sum, deadline(), group::Order::by_rank);
            check(started.get(deadline()));
        }
        settle(*member.engine);
    });
}

TEST_P(StartingPromises, of_a_handler_are_bounded_and_a_thread_waits_for_room) {
    run(2, [](Channel& channel) {
        constexpr std::size_t most = group::StartedCalls::waiting_max;
        Member member;
        std::optional<Group> group;
        std::vector<Future<void>> ends;
        std::atomic<bool> has_all = false;
        const auto go = member.handlers.add("go", [&](Call&) {
            for (std::size_t i = 0; i < most; ++i) ends.push_back(group->start().barrier());
            auto over = group->start().barrier();
            EXPECT_TRUE(over.is_ready());
            expect_code(over.get(), ErrorCode::too_large, {"barrier among 0-1: 256 calls", "wait for some of them"});
            has_all = true;
        });
        member.open(channel);
        group = good(member.groups->group({0, 1}));
        if (channel.self() == 0) {
            good(member.engine->send(0, go));
            EXPECT_TRUE(member.engine->wait_until([&] { return has_all.load(); }, deadline()));
            expect_code(group->start().barrier(now() + 20ms).get(), ErrorCode::timed_out, {"256 calls"});
            meet(member);
            auto last = group->start().barrier(); // waits until there is room
            EXPECT_TRUE(ends.front().is_ready());
            good(last.get(deadline()));
            for (auto& end : ends) good(end.get());
        } else {
            meet(member);
            for (std::size_t i = 0; i < most + 1; ++i) good(group->barrier(deadline()));
        }
        settle(*member.engine);
    });
}

// ---- deadlines

TEST_P(StartingPromises, that_are_late_end_in_time_though_no_thread_waits) {
    run(2, [](Channel& channel) {
        Member member;
        member.open(channel, {.keepalive_every = 60s});
        Group group = good(member.groups->group({0, 1}));
        good(group.barrier(deadline()));
        if (channel.self() == 0) {
            std::this_thread::sleep_for(50ms); // until all sleep
            const Instant begin = now();
            auto late = group.start().barrier(begin + 100ms);
            EXPECT_FALSE(late.is_ready());
            EXPECT_TRUE(is_ready_soon(late));
            EXPECT_GE(now() - begin, 100ms);
            EXPECT_LT(now() - begin, 5s);
            expect_code(late.get(), ErrorCode::timed_out,
                        {"barrier among 0-1: ", "has not come within the time given"});
            meet(member);
        } else {
            meet(member);
            good(group.barrier(deadline())); // the other one has arrived, and given up
        }
        if (channel.self() == 0) good(group.barrier(deadline())); // the same one
        good(group.barrier(deadline()));
        settle(*member.engine);
    });
}

TEST_P(StartingPromises, that_are_late_behind_others_end_first_and_the_other_members_are_told) {
    run_group(2, [](Member& member, Group& group) {
        if (group.rank() == 0) {
            auto first = group.start().barrier();
            {
                std::vector<std::uint64_t> gone(50'000, 1), all(2 * gone.size());
                auto late = group.start().allgather(gone, all, now() + 20ms);
                expect_code(late.get(deadline()), ErrorCode::timed_out,
                            {"allgather among 0-1: calls on this set that were started before"});
                expect_code(group.allreduce(gone, gone, group::sum, now() + 20ms), ErrorCode::timed_out,
                            {"allreduce among 0-1: calls on this set"});
            } // the buffers are free: nothing may be taken from them, or put into them
            auto last = group.start().allreduce(1, group::sum);
            EXPECT_FALSE(first.is_ready());
            EXPECT_FALSE(last.is_ready());
            meet(member);
            good(first.get(deadline()));
            EXPECT_EQ(good(last.get(deadline())), 2);
        } else {
            meet(member);
            good(group.barrier(deadline()));
            std::vector<std::uint64_t> values(50'000, 1), all(2 * values.size());
            expect_code(group.allgather(values, all, deadline()), ErrorCode::timed_out,
                        {"allgather among 0-1: node 0", "has given up"});
            expect_code(group.allreduce(values, values, group::sum, deadline()), ErrorCode::timed_out,
                        {"allreduce among 0-1: node 0", "has given up"});
            EXPECT_EQ(good(group.allreduce(1, group::sum, deadline())), 2);
        }
    });
}

TEST_P(StartingPromises, the_deadline_of_a_thread_is_not_that_of_the_call) {
    run_group(2, [](Member& member, Group& group) {
        if (group.rank() == 0) {
            auto met = group.start().barrier();
            expect_code(met.get(now() + 10ms), ErrorCode::timed_out, {"deadline has passed"});
            meet(member);
            good(met.get(deadline()));
        } else {
            meet(member);
            good(group.barrier(deadline()));
        }
    });
}

TEST_P(StartingPromises, a_barrier_that_was_late_is_the_one_that_the_next_call_waits_for) {
    for (const Node nodes : {2u, 3u})
        run(nodes, [nodes](Channel& channel) {
            Member member;
            member.open(channel);
            Group group = good(member.groups->group(Set::range(0, nodes)));
            if (channel.self() == 0) {
                expect_code(group.barrier(now() + 20ms), ErrorCode::timed_out, {"barrier among 0-"});
                meet(member); // now the others make their first call
                meet(member);
                // The others have ended their first call and make no second one yet.
                good(group.barrier(deadline()));
                expect_code(group.start().barrier(now() + 50ms).get(deadline()), ErrorCode::timed_out,
                            {"barrier among 0-"});
                meet(member);
            } else {
                meet(member);
                good(group.barrier(deadline())); // node 0 has arrived, and given up
                meet(member);
                meet(member);
            }
            good(group.barrier(deadline())); // the second one, of all
            settle(*member.engine);
        });
}

// ---- futures that nobody has, and the end of the job

TEST_P(StartingPromises, whose_futures_are_dropped_go_on) {
    run_group(3, [](Member& member, Group& group) {
        engine::Memory memory = member.engine->memory();
        const auto words = good(memory.segment<std::uint64_t>(1)); // at node 0: cancelled barriers
        std::vector<int> values(10'000, 1), sums(values.size());
        (void)group.start().allreduce(values, sums, group::sum);
        if (group.rank() == 0) {
            const std::atomic_ref cancelled(words[0]);
            EXPECT_TRUE(member.engine->wait_until([&] { return cancelled.load() == 2; }, deadline()));
            (void)group.start().barrier();
        } else {
            auto cancelled = group.start().barrier();
            cancelled.cancel();
            expect_code(cancelled.get(), ErrorCode::cancelled, {"cancelled"});
            good(memory.fetch_add(words.at(0), 1));
        }
        good(group.barrier(deadline()));
        EXPECT_EQ(sums, std::vector<int>(sums.size(), 3));
    });
}

/// As large as what the test takes from the heap.
struct Numbers {
    std::array<long, 100> all;
};

TEST_P(StartingPromises, one_value_stays_until_the_call_has_ended_though_its_future_was_cancelled) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group(Set::range(0, 3)));
        const auto add = [](const Numbers& a, const Numbers& b) {
            Numbers sum;
            for (std::size_t i = 0; i < sum.all.size(); ++i) sum.all[i] = a.all[i] + b.all[i];
            return sum;
        };
        Numbers mine;
        mine.all.fill(1);
        for (const group::Order order : {group::Order::tree, group::Order::by_rank})
            for (int round = 0; round < 10; ++round) {
                if (channel.self() == 0) {
                    meet(member);
                    EXPECT_EQ(good(group.start().allreduce(mine, add, never, order).get(deadline())).all[99], 3);
                    good(group.barrier(deadline()));
                } else {
                    auto cancelled = group.start().allreduce(mine, add, never, order);
                    cancelled.cancel();
                    cancelled = {};
                    std::vector<std::unique_ptr<std::array<long, 104>>> taken; // what was given back is taken again
                    for (int i = 0; i < 50; ++i) {
                        taken.push_back(std::make_unique<std::array<long, 104>>());
                        taken.back()->fill(-7);
                    }
                    meet(member);
                    good(group.barrier(deadline()));
                    for (const auto& one : taken)
                        EXPECT_EQ(std::ranges::count(*one, -7), 104) << "the call has written there";
                }
            }
        settle(*member.engine);
    });
}

TEST_P(StartingPromises, one_that_was_cancelled_keeps_its_deadline_and_its_place_in_the_order) {
    run(2, [](Channel& channel) {
        std::vector<std::uint32_t> values(50'000, 1), sums(values.size()); // as large that each waits for the other
        Member member;
        member.open(channel);
        Group group = good(member.groups->group(Set::range(0, 2)));
        for (int round = 0; round < 2; ++round) {
            if (channel.self() == 0) {
                auto cancelled = group.start().allreduce(values, sums, group::sum, now() + 20ms);
                cancelled.cancel();
                auto next = group.start().allreduce(1, group::sum);
                std::this_thread::sleep_for(60ms); // no thread waits for it
                meet(member);
                EXPECT_EQ(good(next.get(deadline())), 2);
            } else {
                meet(member);
                expect_error(group.allreduce(values, sums, group::sum, deadline()), {"allreduce among 0-1", "time"});
                EXPECT_EQ(good(group.allreduce(1, group::sum, deadline())), 2);
            }
        }
        settle(*member.engine);
    });
}

TEST_P(StartingPromises, the_end_of_a_job_waits_for_those_that_the_others_need) {
    run(2, [](Channel& channel) {
        std::vector<std::uint32_t> values(100'000, channel.self() == 0 ? 7 : 0); // outlives the engine
        Member member;
        member.open(channel);
        Group group = good(member.groups->group({0, 1}));
        settle(*member.engine);
        if (channel.self() == 0) {
            (void)group.start().broadcast(0, values);
        } else {
            std::this_thread::sleep_for(200ms);
            good(group.broadcast(0, values, deadline()));
            EXPECT_EQ(values, std::vector<std::uint32_t>(values.size(), 7));
        }
    });
}

KUMI_ENGINE_WORLDS(StartingPromises);

} // namespace
} // namespace kumi::group_test
