// Puts, gets, copies and atomic operations that give futures, and atomic operations of every kind, in every world.

#include "engine/node.hpp"

#include "kumi/engine/future/coroutine.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace kumi::engine_test {
namespace {

class MemoryFutures : public EngineTest {};

TEST_P(MemoryFutures, puts_and_gets_of_every_size_are_there_when_their_futures_are_ready) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        constexpr std::size_t largest = 300'000;
        const auto memory = good(engine.memory().segment<std::byte>(largest));
        const Node other = 1 - engine.node();
        auto async = engine.memory().async();
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{1000},
                                       std::size_t{65'536}, std::size_t{65'537}, largest}) {
            std::vector<std::byte> content = pattern(size, size + engine.node()), got(size);
            good(async.put(memory.at(other), content).get(deadline()));
            std::ranges::fill(content, std::byte{0xEE}); // the source is ours again
            good(async.get(memory.at(other), got).get(deadline()));
            EXPECT_TRUE(is_pattern(got, size + engine.node())) << size;
            good(engine.barrier(deadline()));
            EXPECT_TRUE(is_pattern(memory.local().first(size), size + other)) << size;
            good(engine.barrier(deadline()));
        }
    });
}

TEST_P(MemoryFutures, a_thousand_are_under_way_at_once) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const std::size_t count = sanitized ? 200 : 1000;
        const auto words = good(engine.memory().segment<std::uint64_t>(1 + 3 * count));
        auto async = engine.memory().async();
        std::vector<Future<std::uint64_t>> tickets;
        for (Node i = 0; i < count; ++i) tickets.push_back(async.fetch_add(words.at(i % 3), 1));
        std::vector<Future<void>> writes;
        for (Node i = 0; i < count; ++i) {
            const auto answers = good(when_all(std::move(tickets[i])).get(deadline()));
            const std::uint64_t ticket = good(std::get<0>(answers));
            writes.push_back(async.write(words.at(i % 3, 1 + ticket), 1));
        }
        for (const Result<void>& written : good(when_all(std::move(writes)).get(deadline()))) good(written);
        good(engine.barrier(deadline()));
        const std::uint64_t drawn = words[0];
        EXPECT_EQ(std::accumulate(words.local().begin() + 1, words.local().end(), std::uint64_t{0}), drawn)
            << "each number was drawn once";
        EXPECT_TRUE(std::all_of(words.local().begin() + 1, words.local().begin() + 1 + static_cast<long>(drawn),
                                [](std::uint64_t word) { return word == 1; }));
        good(engine.barrier(deadline()));
    });
}

TEST_P(MemoryFutures, copies_between_any_two_nodes_are_there_when_their_futures_are_ready) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        constexpr std::size_t bytes = 100'000;
        const auto memory = good(engine.memory().segment<std::byte>(2 * bytes));
        fill_pattern(memory.local().first(bytes), engine.node());
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            for (Node from = 0; from < 3; ++from)
                for (Node to = 0; to < 3; ++to) {
                    good(engine.memory().async().copy(memory.at(from), memory.at(to, bytes), bytes).get(deadline()));
                    std::vector<std::byte> got(bytes);
                    good(engine.memory().get(memory.at(to, bytes), got));
                    EXPECT_TRUE(is_pattern(got, from)) << from << " to " << to;
                }
        }
        good(engine.barrier(deadline()));
    });
}

/// Follows pointers from node to node: each word names the next node, and holds a number.
Future<std::uint64_t> walk(engine::Memory memory, Segment<std::uint64_t> words, Node first, Node nodes, int steps) {
    std::uint64_t sum = 0;
    for (Node at = first; steps > 0; --steps, at = (at + 1) % nodes) {
        const auto word = co_await memory.async().read(words.at(at));
        if (!word) co_return word.error();
        sum += *word;
    }
    co_return sum;
}

TEST_P(MemoryFutures, a_coroutine_reads_the_memory_of_one_node_after_the_other) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const auto words = good(engine.memory().segment<std::uint64_t>(1));
        words[0] = 1 + engine.node();
        good(engine.barrier(deadline()));
        std::vector<Future<std::uint64_t>> walks;
        for (Node first = 0; first < 3; ++first) walks.push_back(walk(engine.memory(), words, first, 3, 30));
        for (Future<std::uint64_t>& one : walks) EXPECT_EQ(good(one.get(deadline())), 60u);
        good(engine.barrier(deadline()));
    });
}

TEST_P(MemoryFutures, atomic_operations_of_every_kind_meet_those_of_the_owner) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const int count = static_cast<int>(10 * scale);
        const auto reals = good(engine.memory().segment<double>(2));
        const auto smalls = good(engine.memory().segment<float>(2));
        const auto bits = good(engine.memory().segment<std::uint32_t>(4));
        const auto extremes = good(engine.memory().segment<std::int64_t>(3));
        const auto unsigneds = good(engine.memory().segment<std::uint64_t>(3));
        bits[1] = ~0u;
        unsigneds[0] = ~std::uint64_t{0};
        good(engine.barrier(deadline()));
        auto memory = engine.memory();
        const int self = static_cast<int>(engine.node());
        std::vector<Future<double>> added;
        for (int i = 1; i <= count; ++i) {
            const std::int64_t value = i * 3 + self;
            added.push_back(memory.async().fetch_add(reals.at(0), 0.5));
            good(memory.fetch_add(smalls.at(0), 0.25f));
            good(memory.fetch_or(bits.at(0, 0), 1u << (i % 8 + 8 * self)));
            good(memory.fetch_and(bits.at(0, 1), ~(1u << (i % 8 + 8 * self))));
            good(memory.fetch_xor(bits.at(0, 2), 1u << self));
            good(memory.fetch_max(extremes.at(0, 0), value));
            good(memory.fetch_min(extremes.at(0, 1), -value));
            good(memory.fetch_min(unsigneds.at(0, 0), ~std::uint64_t{0} - static_cast<std::uint64_t>(value)));
            good(memory.fetch_max(unsigneds.at(0, 1), static_cast<std::uint64_t>(-value)));
            good(memory.fetch_max(reals.at(0, 1), (i * 3 + self) / 4.0));
            for (float seen = 0;;) { // plus 0.5, by hand
                const float before = good(memory.compare_exchange(smalls.at(0, 1), seen, seen + 0.5f));
                if (before == seen) break;
                seen = before;
            }
            if (self != 0) continue;
            // The owner changes the same words by itself.
            std::atomic_ref<std::uint32_t>(bits[2]).fetch_xor(16);
            std::atomic_ref<double> real(reals[0]);
            for (double seen = real; !real.compare_exchange_weak(seen, seen + 0.5);) {
            }
        }
        for (Future<double>& before : added) good(before.get(deadline()));
        settle(engine);
        if (self == 0) {
            EXPECT_EQ(reals[0], 0.5 * 4 * count);
            EXPECT_EQ(smalls[0], 0.25f * 3 * static_cast<float>(count));
            EXPECT_EQ(smalls[1], 0.5f * 3 * static_cast<float>(count));
            EXPECT_EQ(bits[0], 0xFFFFFFu);
            EXPECT_EQ(bits[1], 0xFF000000u);
            EXPECT_EQ(bits[2], count % 2 == 0 ? 0u : 0x17u);
            EXPECT_EQ(bits[3], 0u) << "nobody changes the last";
            EXPECT_EQ(extremes[0], count * 3 + 2);
            EXPECT_EQ(extremes[1], -(count * 3 + 2));
            EXPECT_EQ(unsigneds[0], ~std::uint64_t{0} - static_cast<std::uint64_t>(count * 3 + 2));
            EXPECT_EQ(unsigneds[1], static_cast<std::uint64_t>(-3)) << "of node 0, in its first round";
            EXPECT_EQ(reals[1], (count * 3 + 2) / 4.0);
        }
        good(engine.barrier(deadline()));
    });
}

KUMI_ENGINE_WORLDS(MemoryFutures);

} // namespace
} // namespace kumi::engine_test
