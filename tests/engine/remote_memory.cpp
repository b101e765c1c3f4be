// Segments, heaps, and what is copied between them, in every world.

#include "engine/node.hpp"
#include "engine/random_memory.hpp"

#include <algorithm>
#include <numeric>

namespace kumi::engine_test {
namespace {

class RemoteMemory : public EngineTest {};

TEST_P(RemoteMemory, puts_and_gets_of_every_size_carry_what_they_should_and_no_more) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        constexpr std::size_t largest = 1'000'000, guard = 64;
        const auto memory = good(engine.memory().segment<std::byte>(largest + 2 * guard));
        const Node other = 1 - engine.node();
        const auto sizes = interesting_sizes(largest);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::size_t offset = guard - i % 9;
            std::vector<std::byte> content = pattern(sizes[i], i + engine.node());
            const auto place = memory.at(other, offset);
            good(i % 2 == 0 ? engine.memory().put(place, content) : engine.memory().start_put(place, content));
            if (i % 2 == 0) std::ranges::fill(content, std::byte{0xEE}); // the source is ours again
            settle(engine);
            EXPECT_TRUE(is_pattern(memory.local().subspan(offset, sizes[i]), i + other)) << sizes[i];
            EXPECT_EQ(memory[offset - 1], std::byte{0}) << sizes[i];
            EXPECT_EQ(memory[offset + sizes[i]], std::byte{0}) << sizes[i];
            std::vector<std::byte> got(sizes[i] + 1, std::byte{0xAA});
            good(engine.memory().get(place, MutableBytes(got).first(sizes[i])));
            EXPECT_TRUE(is_pattern(Bytes(got).first(sizes[i]), i + engine.node())) << sizes[i];
            EXPECT_EQ(got.back(), std::byte{0xAA});
            good(engine.barrier());
            std::ranges::fill(memory.local().subspan(offset, sizes[i]), std::byte{0});
            good(engine.barrier());
        }
    });
}

TEST_P(RemoteMemory, what_is_copied_within_a_segment_may_overlap) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        constexpr std::size_t bytes = 10'000; // in one piece
        const auto memory = good(engine.memory().segment<std::byte>(bytes + 100));
        for (const Node node : {0u, 1u}) {
            fill_pattern(memory.local().first(bytes), 1);
            good(engine.barrier());
            if (engine.node() == 0) good(engine.memory().copy(memory.at(node), memory.at(node, 33), bytes));
            settle(engine);
            EXPECT_TRUE(engine.node() != node || is_pattern(memory.local().subspan(33, bytes), 1))
                << "forth on node " << node;
            fill_pattern(memory.local().subspan(33, bytes), 2);
            good(engine.barrier());
            if (engine.node() == 0) good(engine.memory().copy(memory.at(node, 33), memory.at(node), bytes));
            settle(engine);
            EXPECT_TRUE(engine.node() != node || is_pattern(memory.local().first(bytes), 2)) << "back on node " << node;
            good(engine.barrier());
        }
    });
}

TEST_P(RemoteMemory, atomic_operations_of_all_nodes_and_threads_add_up) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const std::uint64_t count = 40 * scale;
        const auto words = good(engine.memory().segment<std::uint64_t>(4));
        const auto shorts = good(engine.memory().segment<std::int32_t>(2));
        const auto tickets = good(engine.memory().segment<std::uint8_t>(3 * 2 * count));
        const auto work = [&](Node target) {
            try {
                for (std::uint64_t i = 0; i < count; ++i) {
                    const std::uint64_t ticket = good(engine.memory().fetch_add(words.at(0), 1)); // each number once
                    good(engine.memory().write(tickets.at(0, ticket), 1));
                    good(engine.memory().fetch_add(shorts.at(target, 1), -3));
                    for (std::uint64_t seen = 0;;) { // plus 5, by hand
                        const std::uint64_t before =
                            good(engine.memory().compare_exchange(words.at(target, 1), seen, seen + 5));
                        if (before == seen) break;
                        seen = before;
                    }
                }
            } catch (const Stop&) {
            }
        };
        std::thread other([&] { work(1); });
        work(2);
        other.join();
        settle(engine);
        if (engine.node() == 0) {
            EXPECT_EQ(words[0], 3 * 2 * count);
            EXPECT_TRUE(std::ranges::all_of(tickets.local(), [](auto drawn) { return drawn == 1; }));
        } else {
            EXPECT_EQ(words[1], 3 * 5 * count);
            EXPECT_EQ(shorts[1], -3 * 3 * static_cast<std::int32_t>(count));
            EXPECT_EQ(shorts[0], 0) << "its neighbour is untouched";
        }
        good(engine.barrier());
    });
}

TEST_P(RemoteMemory, what_is_swapped_in_is_swapped_out_once) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const std::int64_t count = 40 * scale;
        const auto words = good(engine.memory().segment<std::int64_t>(2));
        std::int64_t in = 0, out = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t token = 1 + i * 3 + engine.node();
            in += token;
            out += good(engine.memory().swap(words.at(0), token));
        }
        good(engine.memory().fetch_add(words.at(1, 0), in));
        good(engine.memory().fetch_add(words.at(1, 1), out));
        good(engine.barrier());
        EXPECT_EQ(good(engine.memory().read(words.at(1, 0))),
                  good(engine.memory().read(words.at(1, 1))) + good(engine.memory().read(words.at(0))));
        good(engine.barrier());
    });
}

TEST_P(RemoteMemory, random_operations_do_what_a_model_says) {
    run(4, [](Channel& channel) {
        Engine engine = open(channel);
        std::mt19937_64 random(seed() * 31 + engine.node());
        RandomMemory memory(engine, random);
        for (long step = 0; step < 120 * scale; ++step) memory.step();
        memory.finish();
    });
}

KUMI_ENGINE_WORLDS(RemoteMemory);

} // namespace
} // namespace kumi::engine_test
