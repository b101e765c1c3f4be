// Collectives that were started: no thread waits for them. Whole jobs in one thread, by seed; in every
// world: promises/starting.cpp.

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
