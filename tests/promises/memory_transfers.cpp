// What engine/memory.hpp promises of puts, gets, copies and atomic operations: each test is one promise, in every
// world.

#include "engine/node.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace kumi::engine_test {
namespace {

class TransferPromises : public EngineTest {};

TEST_P(TransferPromises, the_source_of_a_put_may_be_changed_when_the_call_returns) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const Node other = 1 - engine.node();
        constexpr std::size_t bytes = 200'000;
        const auto data = good(memory.segment<std::byte>(bytes));
        auto source = pattern(bytes, 5);
        good(memory.put(data.at(other), source));
        std::ranges::fill(source, std::byte{0xEE});
        settle(engine);
        EXPECT_TRUE(is_pattern(data.local(), 5));
        good(engine.barrier(deadline()));
        // Of futures: when they are ready.
        source = pattern(bytes, 6);
        good(memory.async().put(data.at(other), source).get(deadline()));
        std::ranges::fill(source, std::byte{0xEE});
        auto written = memory.async().write(data.at(other), std::byte{0x55}); // a copy is kept
        good(engine.barrier(deadline()));
        good(written.get(deadline()));
        good(engine.barrier(deadline()));
        EXPECT_EQ(data[0], std::byte{0x55});
        EXPECT_TRUE(std::ranges::equal(data.local().subspan(1), Bytes(pattern(bytes, 6)).subspan(1)));
    });
}

TEST_P(TransferPromises, the_source_of_a_put_that_was_begun_may_be_changed_after_sync) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        constexpr std::size_t bytes = 200'000;
        const auto data = good(memory.segment<std::byte>(bytes));
        auto source = pattern(bytes, 5);
        good(memory.start_put(data.at(1 - engine.node()), source));
        good(engine.sync(deadline()));
        std::ranges::fill(source, std::byte{0xEE});
        good(engine.barrier(deadline()));
        EXPECT_TRUE(is_pattern(data.local(), 5));
    });
}

TEST_P(TransferPromises, an_error_that_only_the_other_node_knows_comes_to_sync_and_of_a_future_to_the_future_alone) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const auto words = good(memory.segment<std::uint64_t>(4));
        const auto beyond = good(memory.allocate<std::uint64_t>()).on(1 - engine.node()) + (1 << 20);
        expect_error_by_sync(engine, memory.write(beyond, 1), {"node"});
        expect_error_by_sync(engine, memory.copy(words.here(), beyond, 1), {"node"});
        std::uint64_t target = 0;
        expect_code(memory.async().write(beyond, 1).get(deadline()), ErrorCode::not_found);
        expect_code(memory.async().get(beyond, {&target, 1}).get(deadline()), ErrorCode::not_found);
        expect_code(memory.async().read(beyond).get(deadline()), ErrorCode::not_found);
        expect_code(memory.async().fetch_add(beyond, 1).get(deadline()), ErrorCode::not_found);
        { const auto dropped = memory.async().write(beyond, 1); }
        good(engine.sync(deadline()));
    });
}

TEST_P(TransferPromises, a_future_that_is_dropped_or_timed_out_leaves_its_operation_under_way_and_sync_waits_for_it) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const Node other = 1 - engine.node();
        constexpr std::size_t bytes = 300'000;
        const auto data = good(memory.segment<std::byte>(bytes));
        fill_pattern(data.local(), engine.node());
        good(engine.barrier(deadline()));
        std::vector<std::byte> first(bytes), second(bytes);
        { const auto dropped = memory.async().get(data.at(other), first); }
        auto late = memory.async().get(data.at(other), second);
        (void)late.get(now());
        good(engine.sync(deadline()));
        EXPECT_TRUE(is_pattern(first, other));
        EXPECT_TRUE(is_pattern(second, other));
    });
}

TEST_P(TransferPromises, after_cancel_nothing_is_read_for_a_put) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        constexpr std::size_t bytes = 1'000'000;
        const auto data = good(memory.segment<std::byte>(bytes));
        good(engine.barrier(deadline()));
        {
            std::vector<std::byte> source(bytes, std::byte{0x11});
            auto put = memory.async().put(data.at(1 - engine.node()), source);
            put.cancel();
            std::ranges::fill(source, std::byte{0xEE}); // and gone
        }
        good(engine.sync(deadline()));
        good(engine.barrier(deadline()));
        EXPECT_TRUE(std::ranges::none_of(data.local(), [](std::byte byte) { return byte == std::byte{0xEE}; }));
    });
}

TEST_P(TransferPromises, a_put_of_nothing_carries_out_its_notice) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const Node other = 1 - engine.node();
        const auto flags = good(memory.segment<Flag>(6));
        const auto bytes = flags.at(other).as<std::byte>();
        const std::byte unused{};
        good(memory.put(flags.at(other), std::span<const Flag>(), Notice::set(flags.at(other, 1))));
        good(memory.start_put(flags.at(other), std::span<const Flag>(), Notice::set(flags.at(other, 2))));
        good(memory.put_strided(bytes, &unused, {0, 3, 0, 0}, Notice::set(flags.at(other, 3))));
        good(memory.put_strided(bytes, &unused, {8, 0, 8, 8}, Notice::set(flags.at(other, 4))));
        good(memory.copy(flags.at(other), flags.at(other), 0, Notice::set(flags.at(other, 5))));
        for (std::size_t i = 1; i <= 5; ++i) good(memory.wait(flags[i], 1, deadline()));
    });
}

TEST_P(TransferPromises, atomic_operations_answer_what_was_there_before_and_refuse_words_that_are_not_aligned) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const auto words = good(memory.segment<std::int64_t>(4));
        const auto reals = good(memory.segment<double>(4));
        words[0] = -5;
        good(engine.barrier(deadline()));
        const auto word = words.at(1 - engine.node());
        EXPECT_EQ(good(memory.fetch_add(word, 2)), -5);
        EXPECT_EQ(good(memory.fetch_max(word, -10)), -3);
        EXPECT_EQ(good(memory.fetch_min(word, -10)), -3);
        EXPECT_EQ(good(memory.swap(word, 6)), -10);
        EXPECT_EQ(good(memory.compare_exchange(word, 5, 9)), 6);
        EXPECT_EQ(good(memory.compare_exchange(word, 6, 9)), 6);
        EXPECT_EQ(good(memory.fetch_and(word, 8)), 9);
        EXPECT_EQ(good(memory.fetch_or(word, 3)), 8);
        EXPECT_EQ(good(memory.fetch_xor(word, 1)), 11);
        EXPECT_EQ(good(memory.read(word)), 10);
        const auto real = reals.at(1 - engine.node());
        EXPECT_EQ(good(memory.fetch_add(real, 0.5)), 0.0);
        EXPECT_EQ(good(memory.fetch_max(real, std::numeric_limits<double>::quiet_NaN())), 0.5);
        EXPECT_EQ(good(memory.fetch_add(real, -0.5)), 0.5);
        EXPECT_EQ(good(memory.compare_exchange(real, -0.0, 7.0)), 0.0);
        EXPECT_EQ(good(memory.read(real)), 0.0) << "0.0 is not -0.0";
        expect_code(memory.fetch_add((word.as<char>() + 4).as<std::int64_t>(), 1), ErrorCode::misuse, {"aligned"});
        expect_code(memory.async().fetch_add((word.as<char>() + 4).as<std::int64_t>(), 1).get(deadline()),
                    ErrorCode::misuse, {"aligned"});
    });
}

TEST_P(TransferPromises, gets_that_were_begun_are_done_when_their_flags_say_so) {
    run(3, [](Channel& channel) {
        constexpr std::size_t bytes = 100'000, count = 12;
        std::vector<std::vector<std::byte>> got(count, std::vector<std::byte>(bytes));
        std::array<Flag, count> flags{};
        Engine engine = open(channel);
        const auto memory = good(engine.memory().segment<std::byte>(bytes * count));
        for (std::size_t i = 0; i < count; ++i)
            fill_pattern(memory.local().subspan(i * bytes, bytes), i + engine.node());
        good(engine.barrier());
        for (std::size_t i = 0; i < count; ++i)
            good(engine.memory().start_get(memory.at(static_cast<Node>(i % 3), i * bytes), got[i], &flags[i]));
        for (const std::size_t i : {7u, 0u, 11u}) {
            good(engine.memory().wait(flags[i], 1, deadline()));
            EXPECT_TRUE(is_pattern(got[i], i + i % 3));
        }
        good(engine.sync());
        for (std::size_t i = 0; i < count; ++i) {
            EXPECT_EQ(load_flag(flags[i]), 1u);
            EXPECT_TRUE(is_pattern(got[i], i + i % 3));
        }
        good(engine.barrier());
    });
}

TEST_P(TransferPromises, copies_run_between_any_two_nodes) {
    run_engines(4, [](Engine& engine) {
        constexpr std::size_t bytes = 150'000;
        const auto memory = good(engine.memory().segment<std::byte>(bytes * 2));
        const auto arrived = good(engine.memory().segment<Counter>(1));
        for (Node from = 0; from < 4; ++from)
            for (Node to = 0; to < 4; ++to) {
                fill_pattern(memory.local().first(bytes), from * 4 + to + engine.node());
                std::ranges::fill(memory.local().last(bytes), std::byte{0});
                good(engine.barrier());
                const Node by = (from * 7 + to) % 4; // often a third node
                if (engine.node() == by)
                    good(engine.memory().copy(memory.at(from), memory.at(to, bytes), bytes,
                                              Notice::count(arrived.at(to))));
                if (engine.node() == to) {
                    engine.memory().expect(arrived[0], 1);
                    good(engine.memory().wait(arrived[0].flag, 1, deadline()));
                    EXPECT_TRUE(is_pattern(memory.local().last(bytes), from * 4 + to + from))
                        << from << " to " << to << " by " << by;
                }
                settle(engine);
            }
    });
}

TEST_P(TransferPromises, strided_blocks_go_where_they_should) {
    run_engines(2, [](Engine& engine) {
        // of a matrix at the other node; a column of it goes there and back
        constexpr std::size_t rows = 70, columns = 50;
        const auto matrix = good(engine.memory().segment<std::uint32_t>(rows * columns));
        const Node other = 1 - engine.node();
        std::vector<std::uint32_t> column(rows);
        std::iota(column.begin(), column.end(), 1000u);
        const Strided to_there{4, rows, 4, 4 * columns}, from_there{4, rows, 4 * columns, 4};
        good(engine.memory().put_strided(matrix.at(other, 3).as<std::byte>(), std::as_bytes(std::span(column)).data(),
                                         to_there));
        settle(engine);
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t i = 0; i < columns; ++i)
                ASSERT_EQ(matrix[row * columns + i], i == 3 ? 1000 + row : 0) << row << "," << i;
        std::vector<std::uint32_t> back(rows);
        good(engine.memory().get_strided(matrix.at(other, 3).as<std::byte>(),
                                         std::as_writable_bytes(std::span(back)).data(), from_there));
        EXPECT_EQ(back, column);
        // Backwards, and with large blocks.
        constexpr std::size_t block = 4 * columns;
        const auto tile = pattern(block * rows, 5);
        good(engine.barrier());
        good(engine.memory().put_strided(matrix.at(other, (rows - 1) * columns).as<std::byte>(), tile.data(),
                                {block, rows, block, -std::ptrdiff_t{block}}));
        settle(engine);
        const Bytes here = std::as_bytes(matrix.local());
        for (std::size_t row = 0; row < rows; ++row)
            EXPECT_TRUE(std::ranges::equal(here.subspan((rows - 1 - row) * block, block),
                                           Bytes(tile).subspan(row * block, block)))
                << row;
    });
}

TEST_P(TransferPromises, pieces_arrive_together_before_their_notice) {
    run_engines(2, [](Engine& engine) {
        const auto memory = good(engine.memory().segment<std::byte>(400'000));
        const auto flags = good(engine.memory().segment<Flag>(1));
        const Node other = 1 - engine.node();
        const std::vector<std::pair<std::size_t, std::size_t>> places{
            {10, 1}, {100, 0}, {200, 3000}, {5000, 200'000}, {390'000, 10'000}};
        std::vector<std::vector<std::byte>> contents;
        std::vector<PutPiece> puts;
        std::vector<GetPiece> gets;
        for (const auto& [offset, bytes] : places) contents.push_back(pattern(bytes, offset));
        for (std::size_t i = 0; i < places.size(); ++i)
            puts.push_back({memory.at(other, places[i].first), contents[i]});
        good(engine.memory().put_pieces(puts, Notice::set(flags.at(other))));
        good(engine.memory().wait(flags[0], 1, deadline()));
        for (const auto& [offset, bytes] : places)
            EXPECT_TRUE(is_pattern(memory.local().subspan(offset, bytes), offset)) << bytes;
        good(engine.sync());
        std::vector<std::vector<std::byte>> got;
        for (const auto& [offset, bytes] : places) got.emplace_back(bytes);
        for (std::size_t i = 0; i < places.size(); ++i) gets.push_back({memory.at(other, places[i].first), got[i]});
        good(engine.memory().get_pieces(gets));
        EXPECT_EQ(got, contents);
    });
}

TEST_P(TransferPromises, a_get_that_was_cancelled_writes_nothing_any_more) {
    run_engines(2, [](Engine& engine) {
        constexpr std::size_t bytes = 200'000;
        const auto memory = good(engine.memory().segment<std::byte>(bytes));
        fill_pattern(memory.local(), 1);
        good(engine.barrier(deadline()));
        std::vector<std::byte> target(bytes);
        for (int i = 0; i < 20 * scale; ++i) {
            auto got = engine.memory().async().get(memory.at(1 - engine.node()), target);
            if (i % 3 == 0) engine.poll();
            got.cancel();
            std::ranges::fill(target, std::byte{0xAB});
            const auto word = memory.at(1 - engine.node()).as<std::uint32_t>();
            if (i % 5 == 0) good(engine.memory().fetch_or(word, 0)); // is answered after the get
            ASSERT_TRUE(std::ranges::all_of(target, [](std::byte byte) { return byte == std::byte{0xAB}; })) << i;
        }
        settle(engine);
        EXPECT_TRUE(std::ranges::all_of(target, [](std::byte byte) { return byte == std::byte{0xAB}; }));
    });
}

KUMI_ENGINE_WORLDS(TransferPromises);

} // namespace
} // namespace kumi::engine_test
