// Broadcasts, in every world.

#include "engine/node.hpp"

#include <algorithm>

namespace kumi::engine_test {
namespace {

class Broadcast : public EngineTest {};

TEST_P(Broadcast, reaches_all_nodes_from_any_of_them) {
    for (const Node nodes : {1u, 2u, 5u, 9u}) {
        run(nodes, [](Channel& channel) {
            Engine engine = open(channel);
            const auto memory = good(engine.memory().segment<std::byte>(200'000));
            const auto flags = good(engine.memory().segment<Flag>(1));
            Flag round = 0;
            for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{200'000}})
                for (Node root = 0; root < engine.nodes();
                     root += root == 0 || root + 2 >= engine.nodes() ? 1 : engine.nodes() - 2) {
                    ++round;
                    const auto content = pattern(bytes, round);
                    if (engine.node() == root)
                        good(engine.memory().broadcast(memory.at(root), content, Notice::set(flags.at(root), round)));
                    good(engine.memory().wait(flags[0], round, deadline()));
                    EXPECT_TRUE(is_pattern(memory.local().first(bytes), round)) << bytes << " bytes from node " << root;
                    settle(engine);
                }
        });
    }
}

TEST_P(Broadcast, after_sync_it_is_everywhere) {
    run(6, [](Channel& channel) {
        Engine engine = open(channel);
        const auto memory = good(engine.memory().segment<std::byte>(100'000));
        for (std::uint64_t round = 1; round <= 10; ++round) {
            if (engine.node() == round % 6) {
                const auto content = pattern(memory.size(), round);
                good(engine.memory().broadcast(memory.at(0), content));
                good(engine.sync());
                std::vector<std::byte> got(memory.size());
                for (Node node = 0; node < 6; ++node) {
                    good(engine.memory().get(memory.at(node), got));
                    EXPECT_TRUE(is_pattern(got, round)) << "at node " << node;
                }
            }
            good(engine.barrier());
            EXPECT_TRUE(is_pattern(memory.local(), round));
            good(engine.barrier());
        }
    });
}

TEST_P(Broadcast, many_of_many_roots_may_be_under_way_at_once) {
    run(5, [](Channel& channel) {
        Engine engine = open(channel);
        constexpr std::size_t bytes = 3000, each = 20;
        const auto memory = good(engine.memory().segment<std::byte>(5 * each * bytes));
        const auto counters = good(engine.memory().segment<Counter>(1));
        std::vector<std::vector<std::byte>> contents;
        for (std::size_t i = 0; i < each; ++i) contents.push_back(pattern(bytes, engine.node() * each + i));
        for (std::size_t i = 0; i < each; ++i)
            good(engine.memory().broadcast(memory.at(0, (engine.node() * each + i) * bytes), contents[i],
                                  Notice::count(counters.at(0))));
        engine.memory().expect(counters[0], 5 * each);
        good(engine.memory().wait(counters[0].flag, 1, deadline()));
        for (std::size_t i = 0; i < 5 * each; ++i)
            EXPECT_TRUE(is_pattern(memory.local().subspan(i * bytes, bytes), i)) << i;
        settle(engine);
    });
}

TEST_P(Broadcast, who_discards_is_left_alone_and_passes_it_on) {
    run(7, [](Channel& channel) {
        Engine engine = open(channel);
        const auto memory = good(engine.memory().segment<std::byte>(100'000));
        const auto flags = good(engine.memory().segment<Flag>(1));
        for (std::uint64_t round = 1; round <= 8; ++round) {
            const bool discards = engine.node() != 0 && (engine.node() + round) % 3 != 0;
            engine.memory().discard_broadcasts(discards);
            std::ranges::fill(memory.local(), std::byte{0});
            good(engine.barrier());
            const auto content = pattern(memory.size(), round);
            if (engine.node() == 0)
                good(engine.memory().broadcast(memory.at(0), content, Notice::set(flags.at(0), round)));
            if (!discards) good(engine.memory().wait(flags[0], round, deadline()));
            settle(engine);
            if (discards)
                EXPECT_TRUE(std::ranges::all_of(memory.local(), [](std::byte byte) { return byte == std::byte{0}; }));
            else EXPECT_TRUE(is_pattern(memory.local(), round));
            EXPECT_EQ(load_flag(flags[0]) == round, !discards);
            good(engine.barrier());
        }
    });
}

TEST_P(Broadcast, a_place_that_is_nowhere_is_refused) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const auto memory = good(engine.memory().segment<std::byte>(100));
        const std::vector<std::byte> content(200);
        if (engine.node() == 0)
            expect_error_by_sync(engine, engine.memory().broadcast(memory.at(0), content), {"segment"});
        good(engine.barrier());
    });
}

KUMI_ENGINE_WORLDS(Broadcast);

} // namespace
} // namespace kumi::engine_test
