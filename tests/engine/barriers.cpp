// Barriers, in every world. Who has come is counted on node 0.

#include "engine/node.hpp"

#include <algorithm>
#include <deque>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class Barriers : public EngineTest {};

TEST_P(Barriers, a_node_computes_between_coming_and_leaving) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const auto flags = good(engine.memory().segment<Flag>(1));
        for (Flag round = 1; round <= 5; ++round) {
            if (engine.node() == 2) good(engine.memory().wait(flags[0], round, deadline())); // comes last
            const BarrierToken token = engine.arrive();
            if (engine.node() == 0) {
                EXPECT_FALSE(engine.test(token)) << "node 2 cannot have come";
                good(engine.memory().set_flag(flags.at(2), round));
            }
            // nothing waits
            for (const Instant end = deadline(); !engine.test(token) && now() < end;)
                std::this_thread::sleep_for(100us);
            EXPECT_TRUE(engine.test(token));
            good(engine.wait(token));
        }
        good(engine.barrier());
    });
}

TEST_P(Barriers, several_sets_may_be_under_way_at_once) {
    run(4, [](Channel& channel) {
        Engine engine = open(channel);
        const std::vector<Node> low{0, 1, 2}, high{1, 2, 3};
        for (int round = 0; round < 20; ++round) {
            std::vector<BarrierToken> tokens;
            if (engine.node() < 3) tokens.push_back(good(engine.arrive(low)));
            if (engine.node() > 0) tokens.push_back(good(engine.arrive(high)));
            tokens.push_back(engine.arrive());
            if (engine.node() % 2 == 1) std::ranges::reverse(tokens);
            for (const BarrierToken& token : tokens) good(engine.wait(token, deadline()));
        }
        good(engine.barrier());
    });
}

TEST_P(Barriers, one_that_timed_out_is_tried_again_and_nodes_stay_in_step) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const auto come = good(engine.memory().segment<std::uint64_t>(1));
        std::mt19937_64 random(seed() + engine.node());
        for (std::uint64_t round = 1; round <= 20; ++round) {
            if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
            good(engine.memory().fetch_add(come.at(0), 1));
            for (const Instant end = deadline(); now() < end;) {
                const auto all = engine.barrier(now() + std::chrono::microseconds(random() % 1000));
                if (all) break;
                EXPECT_EQ(all.error().code(), ErrorCode::timed_out) << all.error().text();
            }
            const std::uint64_t seen = good(engine.memory().fetch_add(come.at(0), 0));
            EXPECT_GE(seen, round * 3) << "not all have come to barrier " << round;
            EXPECT_LE(seen, round * 3 + 2) << "some are ahead";
        }
        good(engine.barrier(deadline()));
    });
}

/// All that had to be done between them is done: that they have left is no error, and nothing to wait for.
TEST_P(Barriers, who_leaves_after_a_barrier_is_not_missed) {
    run(4, [](Channel& channel) {
        int handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        Engine engine = open(channel, std::move(handlers));
        const auto memory = good(engine.memory().segment<std::byte>(1000));
        const std::vector<std::byte> content(250);
        for (Node to = 0; to < 4; ++to) {
            good(engine.send(to, take));
            good(engine.memory().put(memory.at(to, engine.node() * 250), content));
        }
        good(engine.sync(deadline()));
        good(engine.barrier(deadline()));
        EXPECT_EQ(handled, 4);
        if (engine.node() != 1) return;
        std::this_thread::sleep_for(30ms);
        good(engine.sync(deadline()));
        good(engine.memory().write(memory.here(), std::byte{1})); // it goes on, alone
        good(engine.sync(deadline()));
    });
}

KUMI_ENGINE_WORLDS(Barriers);

} // namespace
} // namespace kumi::engine_test
