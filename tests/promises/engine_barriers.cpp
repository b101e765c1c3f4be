// What engine/engine.hpp promises of barriers: each test is one promise, in every world.

#include "engine/node.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class BarrierPromises : public EngineTest {};

TEST_P(BarrierPromises, a_barrier_that_a_handler_was_refused_has_not_been_arrived_at) {
    run(2, [](Channel& channel) {
        std::atomic<bool> was_refused{false}, may_go{false};
        Handlers handlers;
        const auto misbehave = handlers.add("misbehave", [&](Call& call) {
            expect_code(call.engine().barrier(), ErrorCode::misuse, {"handler"});
            was_refused = true;
        });
        const auto go = handlers.add("go", [&](Call&) { may_go = true; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            good(engine.send(1, misbehave));
            good(engine.sync(deadline()));
            expect_code(engine.barrier(now() + 30ms), ErrorCode::timed_out);
            good(engine.send(1, go));
        } else {
            EXPECT_TRUE(engine.wait_until([&] { return was_refused && may_go; }, deadline()));
        }
        settle(engine);
    });
}

TEST_P(BarrierPromises, a_flag_tells_of_a_barrier_also_to_a_program_that_makes_no_call) {
    run_engines(3, [](Engine& engine) {
        const auto words = good(engine.memory().segment<std::uint64_t>(1));
        for (std::uint64_t round = 1; round <= 20; ++round) {
            Flag flag = 7, of_some = 7, late = 7;
            words[0] = round;
            const BarrierToken token = engine.arrive();
            engine.memory().notify(token, flag);
            EXPECT_LE(std::atomic_ref(flag).load(), 1u);
            const Instant end = deadline();
            if (round % 2 == 0) good(engine.memory().wait(flag, 1, end));
            while (std::atomic_ref(flag).load() == 0 && now() < end) std::this_thread::yield(); // it computes
            EXPECT_EQ(std::atomic_ref(flag).load(), 1u);
            for (Node node = 0; node < engine.nodes(); ++node)
                EXPECT_GE(good(engine.memory().read(words.at(node))), round);
            engine.memory().notify(token, late);
            EXPECT_EQ(late, 1u) << "it is complete";
            if (engine.node() < 2) {
                engine.memory().notify(good(engine.arrive(std::array<Node, 2>{1, 0})), of_some);
                good(engine.memory().wait(of_some, 1, end));
            }
            good(engine.barrier(deadline()));
        }
    });
}

TEST_P(BarrierPromises, a_barrier_that_timed_out_is_gone_on_with_by_any_thread) {
    run_engines(2, [](Engine& engine) {
        const auto words = good(engine.memory().segment<std::uint64_t>(1));
        const auto may_come = good(engine.memory().segment<Flag>(1));
        for (std::uint64_t round = 1; round <= 3; ++round) {
            if (engine.node() == 0) {
                expect_code(engine.barrier(now() - 1s), ErrorCode::timed_out);
                expect_code(engine.barrier(now() + 2ms), ErrorCode::timed_out);
                good(engine.memory().fetch_add(may_come.at(1), 1));
                std::thread([&] { EXPECT_TRUE(engine.barrier(deadline())); }).join();
                EXPECT_EQ(good(engine.memory().read(words.at(1))), round) << "node 1 had not come";
            } else {
                good(engine.memory().wait(may_come[0], round, deadline()));
                words[0] = round;
                good(engine.barrier(deadline()));
            }
            good(engine.barrier(deadline()));
        }
    });
}

TEST_P(BarrierPromises, an_arrive_after_a_barrier_that_timed_out_is_the_next_one) {
    run(2, [](Channel& channel) {
        std::atomic<int> go{0};
        Handlers handlers;
        const auto more = handlers.add("more", [&](Call&) { ++go; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            expect_code(engine.barrier(now() + 1ms), ErrorCode::timed_out); // it has arrived at the first
            const BarrierToken second = engine.arrive();
            EXPECT_FALSE(engine.test(second));
            good(engine.send(1, more)); // node 1 comes to the first
            expect_code(engine.wait(second, now() + 20ms), ErrorCode::timed_out);
            good(engine.send(1, more)); // and to the second
            good(engine.wait(second, deadline()));
            EXPECT_TRUE(engine.test(second));
            expect_code(engine.barrier(now() + 20ms), ErrorCode::timed_out); // the third
            good(engine.send(1, more));
            good(engine.barrier(deadline()));
        } else {
            for (int i = 1; i <= 3; ++i) {
                EXPECT_TRUE(engine.wait_until([&] { return go == i; }, deadline()));
                good(engine.barrier(deadline()));
            }
        }
        settle(engine);
    });
}

TEST_P(BarrierPromises, nobody_leaves_before_all_have_come) {
    for (Node nodes = 1; nodes <= 7; ++nodes) {
        run(nodes, [](Channel& channel) {
            Engine engine = open(channel);
            const auto come = good(engine.memory().segment<std::uint64_t>(1));
            std::mt19937_64 random(seed() + engine.node());
            for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(4 * scale); ++round) {
                if (random() % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
                good(engine.memory().fetch_add(come.at(0), 1));
                good(engine.barrier(deadline()));
                EXPECT_GE(good(engine.memory().fetch_add(come.at(0), 0)), round * engine.nodes());
            }
            good(engine.barrier());
        });
    }
}

TEST_P(BarrierPromises, many_may_be_under_way_and_they_complete_in_order) {
    run_engines(5, [](Engine& engine) {
        constexpr std::uint64_t count = 200;
        const auto come = good(engine.memory().segment<std::uint64_t>(count));
        std::mt19937_64 random(seed() + engine.node());
        std::deque<BarrierToken> under_way;
        std::uint64_t arrived = 0, done = 0;
        while (done < count) {
            if (arrived < count && arrived - done < 60 && random() % 3 != 0) {
                good(engine.memory().fetch_add(come.at(0, arrived++), 1));
                under_way.push_back(engine.arrive());
                continue;
            }
            if (under_way.empty()) continue;
            const BarrierToken& any = under_way[random() % under_way.size()];
            EXPECT_TRUE(!engine.test(any) || engine.test(under_way.front())) << "they complete in order";
            if (random() % 2 == 0) good(engine.wait(under_way.front(), deadline()));
            for (; !under_way.empty() && engine.test(under_way.front()); under_way.pop_front(), ++done)
                EXPECT_EQ(good(engine.memory().read(come.at(0, done))), 5u) << "barrier " << done;
        }
    });
}

TEST_P(BarrierPromises, some_nodes_meet_without_the_others) {
    run_engines(6, [](Engine& engine) {
        const std::vector<std::vector<Node>> sets{{0, 2, 4}, {5, 3, 1}, {4, 5}, {0, 1, 2, 3, 4, 5}, {2}, {3, 0, 5, 1}};
        const auto come = good(engine.memory().segment<std::uint64_t>(sets.size()));
        for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(5 * scale); ++round)
            for (std::size_t i = 0; i < sets.size(); ++i) {
                std::vector<Node> members = sets[i];
                if (std::ranges::find(members, engine.node()) == members.end()) continue;
                // in any order
                std::rotate(members.begin(),
                            members.begin() + static_cast<std::ptrdiff_t>(engine.node() % members.size()),
                            members.end());
                good(engine.memory().fetch_add(come.at(0, i), 1));
                good(engine.wait(good(engine.arrive(members)), deadline()));
                EXPECT_GE(good(engine.memory().fetch_add(come.at(0, i), 0)), round * members.size());
            }
    });
}

TEST_P(BarrierPromises, sets_that_make_no_sense_are_refused) {
    run_engines(3, [](Engine& engine) {
        const Node next = (engine.node() + 1) % 3;
        expect_error(engine.arrive(std::vector<Node>{}), {});
        expect_error(engine.arrive(std::vector<Node>{next}), {});
        expect_error(engine.arrive(std::vector<Node>{engine.node(), 3}), {"node 3"});
        expect_error(engine.arrive(std::vector<Node>{engine.node(), next, next}), {});
    });
}

TEST_P(BarrierPromises, a_wait_ends_at_its_deadline_and_says_who_has_not_come) {
    run_engines(3, [](Engine& engine) {
        const auto flags = good(engine.memory().segment<Flag>(1));
        if (engine.node() == 2) good(engine.memory().wait(flags[0], 1, deadline()));
        const BarrierToken token = engine.arrive();
        if (engine.node() == 0) {
            expect_error(engine.wait(token, now() + 30ms), {"barrier", "node"});
            good(engine.memory().set_flag(flags.at(2)));
        }
        good(engine.wait(token, deadline())); // it goes on all the same
    });
}

KUMI_ENGINE_WORLDS(BarrierPromises);

} // namespace
} // namespace kumi::engine_test
