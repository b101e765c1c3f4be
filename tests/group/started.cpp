// Collectives that were started: no thread waits for them. In every world, and whole jobs in one thread by seed.

#include "engine/one_thread.hpp"
#include "group/node.hpp"
#include "group/one_loss.hpp"
#include "group/together.hpp"

#include "kumi/group/mail/mailbox.hpp"
#include "kumi/group/started/started_calls.hpp"

#include <atomic>
#include <deque>
#include <span>
#include <thread>

namespace kumi::group_test {
namespace {

using engine_test::OneThread;
using group::Group;
using namespace std::chrono_literals;

class StartedCollectives : public GroupTest {};

template <class T>
void expect_code(const Result<T>& result, ErrorCode code, std::initializer_list<std::string_view> words,
                 engine_test::Place where = engine_test::Place::here()) {
    expect_error(result, words, where);
    if (!result && result.error().code() != code)
        ADD_FAILURE_AT(where.file, where.line)
            << name_of(result.error().code()) << " instead of " << name_of(code) << ": " << result.error().text();
}

/// Waits without a call of the engine.
template <class T>
bool is_ready_soon(const Future<T>& future, Duration most = 20s) {
    for (const Instant end = now() + most; !future.is_ready() && now() < end;) std::this_thread::sleep_for(1ms);
    return future.is_ready();
}

// ---- what they answer

TEST_P(StartedCollectives, answer_what_blocking_ones_do) {
    run(4, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group(Set::range(0, 4)));
        for (int what = 0; what < Together::whats; ++what)
            for (const std::size_t count : {std::size_t{3}, std::size_t{9000}})
                for (const group::Order order : {group::Order::tree, group::Order::by_rank}) {
                    const Together one{static_cast<Together::What>(what), static_cast<Node>(what % 4), count, order, 5};
                    EXPECT_TRUE(good(one.start(group).get(deadline()))) << one.text();
                }
        EXPECT_EQ(good(group.start().allreduce(channel.self() + 1, group::sum).get(deadline())), 10u);
        const auto larger = +[](const int& a, const int& b) { return a < b ? b : a; };
        EXPECT_EQ(good(group.start().allreduce(int(channel.self()), larger).get(deadline())), 3);
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, end_though_no_thread_waits) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group(Set::range(0, 3)));
        good(group.barrier(deadline()));
        std::vector<std::uint64_t> values(60'000, channel.self()), sums(values.size());
        auto reduced = group.start().allreduce(values, sums, group::sum);
        auto met = group.start().barrier();
        EXPECT_TRUE(is_ready_soon(met));
        EXPECT_TRUE(reduced.is_ready());
        good(reduced.get());
        EXPECT_EQ(sums, std::vector<std::uint64_t>(sums.size(), 3));
        good(met.get());
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, on_one_set_are_made_in_the_order_in_which_they_were_started) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group(Set::range(0, 3)));
        constexpr std::uint32_t count = 40;
        std::vector<std::uint32_t> order;
        std::deque<std::vector<std::uint32_t>> values;
        std::vector<Future<void>> ends;
        for (std::uint32_t i = 0; i < count; ++i) {
            auto& one = values.emplace_back(i % 7 == 0 ? 30'000 : 1, channel.self() == i % 3 ? i : 0);
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
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, on_different_sets_do_not_wait_for_each_other) {
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

TEST_P(StartedCollectives, may_be_started_by_handlers_and_by_what_is_given_to_then) {
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
            next(2000);
        });
        member.open(channel);
        group = good(member.groups->group(Set::range(0, 3)));
        good(member.engine->barrier(deadline()));
        good(member.engine->send(channel.self(), go));
        EXPECT_TRUE(member.engine->wait_until([&] { return total == 6000; }, deadline()));
        settle(*member.engine);
    });
}

// ---- misuse

TEST_P(StartedCollectives, one_thread_at_a_time_is_in_a_call_on_a_set_also_behind_others) {
    run(2, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group({0, 1}));
        if (channel.self() == 0) {
            constexpr std::string_view another = "another thread is in a call on this set";
            for (const bool is_behind : {false, true}) {
                std::optional<Future<void>> before;
                if (is_behind) before = group.start().barrier();
                std::atomic<bool> begins = false;
                std::thread other([&] {
                    begins = true;
                    good(group.barrier(deadline()));
                });
                while (!begins) std::this_thread::yield();
                std::this_thread::sleep_for(50ms);
                expect_code(group.start().barrier().get(deadline()), ErrorCode::misuse, {"barrier among 0-1", another});
                expect_code(group.barrier(deadline()), ErrorCode::misuse, {"barrier among 0-1", another});
                good(member.engine->barrier(deadline())); // now node 1 comes
                other.join();
                if (before) good(before->get(deadline()));
            }
        } else {
            for (const int calls : {1, 2}) {
                good(member.engine->barrier(deadline()));
                for (int i = 0; i < calls; ++i) good(group.barrier(deadline()));
            }
        }
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, that_cannot_be_are_errors_at_once) {
    run(2, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group({0, 1}));
        std::vector<int> values(4), few(1);
        auto bad = group.start().broadcast(2, values);
        ASSERT_TRUE(bad.is_ready());
        expect_code(bad.get(), ErrorCode::not_found, {"broadcast among 0-1: there is no rank 2", "0 to 1"});
        // Members that come with different sizes, or different calls, are told.
        auto differing = group.start().allreduce(channel.self() == 0 ? values : few,
                                                 channel.self() == 0 ? values : few, group::sum);
        expect_code(differing.get(deadline()), ErrorCode::misuse, {"allreduce among 0-1", "bytes"});
        const auto throwing = [](const int&, const int&) -> int { throw std::runtime_error("no such sum"); };
        expect_code(group.start().allreduce(values, values, throwing).get(deadline()), ErrorCode::refused,
                    {"allreduce among 0-1: the operation threw on", "no such sum"});
        good(group.start().barrier().get(deadline()));
        auto other = channel.self() == 0 ? group.start().barrier() : group.start().broadcast(0, values);
        expect_code(other.get(deadline()), ErrorCode::misuse, {"has called"});
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, that_a_member_has_no_memory_for_are_errors_at_all_that_need_it) {
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

TEST_P(StartedCollectives, of_a_handler_are_bounded_and_a_thread_waits_for_room) {
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
            good(member.engine->barrier(deadline()));
            auto last = group->start().barrier(); // waits until there is room
            EXPECT_TRUE(ends.front().is_ready());
            good(last.get(deadline()));
            for (auto& end : ends) good(end.get());
        } else {
            good(member.engine->barrier(deadline()));
            for (std::size_t i = 0; i < most + 1; ++i) good(group->barrier(deadline()));
        }
        settle(*member.engine);
    });
}

// ---- deadlines

TEST_P(StartedCollectives, that_are_late_end_in_time_though_no_thread_waits) {
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
            good(member.engine->barrier(deadline()));
        } else {
            good(member.engine->barrier(deadline()));
            good(group.barrier(deadline())); // the other one came, and gave up
        }
        good(group.barrier(deadline()));
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, that_are_late_behind_others_end_first_and_the_other_members_are_told) {
    run(2, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group({0, 1}));
        if (channel.self() == 0) {
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
            good(member.engine->barrier(deadline()));
            good(first.get(deadline()));
            EXPECT_EQ(good(last.get(deadline())), 2);
        } else {
            good(member.engine->barrier(deadline()));
            good(group.barrier(deadline()));
            std::vector<std::uint64_t> values(50'000, 1), all(2 * values.size());
            expect_code(group.allgather(values, all, deadline()), ErrorCode::timed_out,
                        {"allgather among 0-1: node 0", "has given up"});
            expect_code(group.allreduce(values, values, group::sum, deadline()), ErrorCode::timed_out,
                        {"allreduce among 0-1: node 0", "has given up"});
            EXPECT_EQ(good(group.allreduce(1, group::sum, deadline())), 2);
        }
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, the_deadline_of_a_thread_is_not_that_of_the_call) {
    run(2, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group({0, 1}));
        if (channel.self() == 0) {
            auto met = group.start().barrier();
            expect_code(met.get(now() + 10ms), ErrorCode::timed_out, {"deadline has passed"});
            good(member.engine->barrier(deadline()));
            good(met.get(deadline()));
        } else {
            good(member.engine->barrier(deadline()));
            good(group.barrier(deadline()));
        }
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, a_barrier_that_was_late_and_is_called_again_does_not_meet_the_others_first_one) {
    for (const Node nodes : {2u, 3u})
        run(nodes, [nodes](Channel& channel) {
            Member member;
            member.open(channel);
            Group group = good(member.groups->group(Set::range(0, nodes)));
            if (channel.self() == 0) {
                expect_code(group.barrier(now() + 20ms), ErrorCode::timed_out, {"barrier among 0-"});
                good(member.engine->barrier(deadline())); // now the others make their first call
                good(member.engine->barrier(deadline()));
                // The others have ended their first call and make no second one yet.
                expect_code(group.barrier(now() + 50ms), ErrorCode::timed_out, {"barrier among 0-"});
                good(member.engine->barrier(deadline()));
            } else {
                good(member.engine->barrier(deadline()));
                if (auto first = group.barrier(deadline()); !first)
                    expect_code(first, ErrorCode::timed_out, {"has given up"});
                good(member.engine->barrier(deadline()));
                good(member.engine->barrier(deadline()));
                if (auto second = group.barrier(deadline()); !second)
                    expect_code(second, ErrorCode::timed_out, {"has given up"});
            }
            good(group.barrier(deadline())); // the third one, of all
            settle(*member.engine);
        });
}

// ---- futures that nobody has, and the end of the job

TEST_P(StartedCollectives, whose_futures_are_dropped_go_on) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group(Set::range(0, 3)));
        std::vector<int> values(10'000, 1), sums(values.size());
        (void)group.start().allreduce(values, sums, group::sum);
        {
            auto cancelled = group.start().barrier();
            cancelled.cancel();
            expect_code(cancelled.get(), ErrorCode::cancelled, {"cancelled"});
        }
        good(group.barrier(deadline()));
        EXPECT_EQ(sums, std::vector<int>(sums.size(), 3));
        settle(*member.engine);
    });
}

TEST_P(StartedCollectives, the_end_of_a_job_waits_for_those_that_the_others_need) {
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

KUMI_ENGINE_WORLDS(StartedCollectives);

// ---- by seed

TEST(StartedInOneThread, are_right_in_any_mix_with_blocking_ones_and_end_in_order) {
    engine_test::for_each_seed(30, [](std::uint64_t seed) {
        auto options = engine_test::options_of(seed, seed % 5 == 0 ? 20 : 6);
        std::mt19937_64 random(seed);
        std::vector<std::pair<Set, Together>> calls;
        std::vector<Set> sets{Set::range(0, options.nodes)};
        for (int i = 0; i < 3; ++i) sets.push_back(random_set(random, options.nodes));
        for (std::size_t i = 0; i < 40; ++i) {
            const Set& set = sets[random() % sets.size()];
            calls.emplace_back(set, any_together(random, set.size()));
        }
        std::vector<Set> come(calls.size()); // to each call, so far
        OneThread world(options);
        if (seed % 2 == 0) world.part_at_random(seed + 1000);
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup());
            std::mt19937_64 own(seed * 31 + channel.self());
            struct Open {
                std::size_t number;
                Future<bool> future;
            };
            std::deque<Open> open;
            const auto check = [&](std::size_t number, bool is_right) {
                const auto& [set, one] = calls[number];
                EXPECT_TRUE(is_right) << one.text() << " among " << set.text();
                for (Node rank = 0; rank < set.size(); ++rank)
                    EXPECT_TRUE(!one.needs(set.rank(channel.self()), rank) || come[number].contains(set.at(rank)))
                        << one.text() << " among " << set.text() << ": node " << channel.self()
                        << " has ended before node " << set.at(rank) << " has come";
            };
            const auto end_first = [&] {
                Open first = std::move(open.front());
                open.pop_front();
                check(first.number, good(first.future.get()));
            };
            for (std::size_t number = 0; number < calls.size(); ++number) {
                const auto& [set, one] = calls[number];
                if (!set.contains(channel.self())) continue;
                if (own() % 4 == 0) // late
                    for (auto polls = own() % 300; polls > 0; --polls) member.engine->poll();
                world.note(channel.self(), fmt::format("in call {} on {}: {}", number, set.text(), one.text()));
                auto group = good(member.groups->group(set));
                come[number].add(channel.self());
                if (own() % 3 == 0) check(number, good(one.call(group)));
                else open.push_back({number, one.start(group)});
                // Of one set those that were started first end first.
                for (std::size_t i = 0; i < open.size(); ++i)
                    for (std::size_t before = 0; before < i; ++before)
                        EXPECT_TRUE(calls[open[i].number].first != calls[open[before].number].first ||
                                    !open[i].future.is_ready() || open[before].future.is_ready());
                while (open.size() > own() % 12) end_first();
            }
            while (!open.empty()) end_first();
            settle(*member.engine);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(StartedInOneThread, that_need_a_lost_node_end_and_the_others_are_right) {
    engine_test::for_each_seed(30, [](std::uint64_t seed) {
        auto options = engine_test::options_of(seed, 7);
        options.nodes += 2;
        OneLoss loss(seed, options);
        const Node victim = loss.victim;
        std::vector<std::pair<Set, Together>> calls;
        for (std::size_t i = 0; i < 25; ++i) {
            const Set set = i % 3 == 0 ? random_set(loss.fate, options.nodes) : Set::range(0, options.nodes);
            calls.emplace_back(set, any_together(loss.fate, set.size()));
        }
        loss.world.run([&](Channel& channel) {
            Member member;
            member.open(channel, loss.world.setup());
            std::vector<std::pair<std::size_t, Future<bool>>> ends;
            for (std::size_t number = 0; number < calls.size(); ++number) {
                if (!calls[number].first.contains(channel.self())) continue;
                auto group = good(member.groups->group(calls[number].first));
                ends.emplace_back(number, calls[number].second.start(group));
            }
            for (auto& [number, end] : ends) {
                loss.world.note(channel.self(), fmt::format("waits for call {}, {} lost", number, victim));
                const auto done = end.get();
                if (channel.self() == victim) continue;
                if (done) {
                    EXPECT_TRUE(*done);
                    continue;
                }
                EXPECT_TRUE(calls[number].first.contains(victim)) << done.error().text();
                expect_code(done, ErrorCode::node_lost, {fmt::format("node {} has left, or is lost", victim)});
            }
            loss.stay(channel, member);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed << ", " << loss.text();
    });
}

TEST(StartedInOneThread, that_have_not_ended_when_the_job_does_say_so_and_so_do_calls_after_it) {
    engine_test::for_each_seed(1, [](std::uint64_t seed) {
        OneThread world({.nodes = 2, .seed = seed});
        bool is_over = false;
        world.run([&](Channel& channel) {
            if (channel.self() == 1) { // it makes no call
                Member member;
                member.open(channel, world.setup());
                member.engine->wait_until([&] { return is_over; });
                return;
            }
            std::optional<Group> group;
            Future<void> open, behind;
            int told = 0;
            {
                Member member;
                member.open(channel, world.setup());
                group = good(member.groups->group({0, 1}));
                open = group->start().barrier();
                behind = group->start().barrier(now() + 1000s).then([&](const Result<void>& ended) {
                    ++told;
                    expect_code(group->start().barrier().get(), ErrorCode::ended, {"the job has ended"});
                    return ended;
                });
                EXPECT_FALSE(open.is_ready());
            }
            ASSERT_TRUE(open.is_ready());
            expect_code(open.get(), ErrorCode::ended, {"barrier among 0-1: the job has ended"});
            ASSERT_TRUE(behind.is_ready());
            expect_code(behind.get(), ErrorCode::ended, {"barrier among 0-1: the job has ended"});
            EXPECT_EQ(told, 1);
            EXPECT_EQ(group->size(), 2u);
            expect_code(group->barrier(), ErrorCode::ended, {"barrier among 0-1: the job has ended"});
            auto refused = group->start().barrier();
            ASSERT_TRUE(refused.is_ready());
            expect_code(refused.get(), ErrorCode::ended, {"barrier among 0-1: the job has ended"});
            const std::vector<int> values(2);
            expect_code(group->gatherv(0, values), ErrorCode::ended, {"gatherv among 0-1: the job has ended"});
            is_over = true;
        });
    });
}

} // namespace
} // namespace kumi::group_test
