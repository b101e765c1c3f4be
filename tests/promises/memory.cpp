// What engine/memory.hpp promises: each test is one promise, in every world.

#include "engine/node.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class MemoryPromises : public EngineTest {};

// ---- segments and heaps

TEST_P(MemoryPromises, memory_of_no_size_is_made_and_freed_as_any_other) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        const Node other = 1 - engine.node();
        const auto nothing = good(memory.segment<std::uint64_t>(0));
        EXPECT_EQ(nothing.size(), 0u);
        good(memory.put(nothing.at(other), std::span<const std::uint64_t>()));
        good(memory.start_put(nothing.at(other), std::span<const std::uint64_t>()));
        good(memory.get(nothing.at(other), std::span<std::uint64_t>()));
        good(memory.copy(nothing.at(other), nothing.here(), 0));
        good(memory.async().put(nothing.at(other), std::span<const std::uint64_t>()).get(deadline()));
        good(memory.async().get(nothing.at(other), std::span<std::uint64_t>()).get(deadline()));
        expect_error_by_sync(engine, memory.write(nothing.at(other), 1), {"segment"});
        const auto place = good(memory.allocate<std::uint64_t>(0));
        good(memory.release(place));
        good(engine.barrier(deadline()));
        good(memory.free(nothing));
        settle(engine);
    });
}

TEST_P(MemoryPromises, more_elements_than_an_address_counts_are_refused_and_not_taken_for_few) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        const Node other = 1 - engine.node();
        const auto words = good(memory.segment<std::uint64_t>(10));
        constexpr std::size_t wraps_to_none = std::size_t{1} << 61; // times 8 bytes: 2 to the 64
        constexpr std::size_t wraps_to_one = wraps_to_none + 1;
        for (const std::size_t count : {wraps_to_none, wraps_to_one, std::numeric_limits<std::size_t>::max()}) {
            EXPECT_EQ(memory.local(words.here(), count), nullptr);
            EXPECT_EQ(memory.local(words.at(other), count), nullptr);
            expect_code(memory.copy(words.here(), words.at(other), count), ErrorCode::not_found);
            expect_code(memory.copy(words.at(other), words.here(), count), ErrorCode::not_found);
            expect_code(memory.async().copy(words.at(other), words.here(), count).get(deadline()),
                        ErrorCode::not_found);
            expect_code(memory.allocate<std::uint64_t>(count), ErrorCode::too_large);
            expect_code(memory.segment<std::uint64_t>(count), ErrorCode::too_large);
        }
        good(engine.barrier(deadline()));
        EXPECT_EQ(words[0], 0u);
        settle(engine);
    });
}

TEST_P(MemoryPromises, heap_memory_is_released_once_and_only_where_it_was_allocated) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        const auto list = good(memory.segment<global_ptr<std::uint64_t>>(1));
        const auto mine = good(memory.allocate<std::uint64_t>(100));
        list[0] = mine;
        good(engine.barrier(deadline()));
        const auto theirs = good(memory.read(list.at(1 - engine.node())));
        expect_code(memory.release(theirs), ErrorCode::misuse, {"node"});
        EXPECT_FALSE(memory.release(mine + 1)) << "not what allocate() gave";
        EXPECT_FALSE(memory.release(list.here())) << "no heap memory";
        EXPECT_FALSE(memory.release(global_ptr<std::uint64_t>()));
        good(memory.release(mine));
        EXPECT_FALSE(memory.release(mine)) << "twice";
        settle(engine);
    });
}

TEST_P(MemoryPromises, freeing_a_segment_waits_for_what_was_begun_and_a_second_time_is_an_error) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        const auto data = good(memory.segment<std::byte>(500'000));
        const auto content = pattern(data.size(), 1);
        good(memory.start_put(data.at(1 - engine.node()), content));
        good(memory.free(data)); // it would have an error of what came too late
        good(engine.sync(deadline()));
        expect_code(memory.free(data), ErrorCode::not_found);
        expect_code(memory.free(Segment<int>()), ErrorCode::not_found);
        settle(engine);
    });
}

TEST_P(MemoryPromises, a_segment_is_zeroed_and_alike_on_all_nodes) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const auto first = good(engine.memory().segment<std::uint64_t>(1000));
        const auto second = good(engine.memory().segment<char>(1));
        const auto large = good(engine.memory().segment<double>(300'000));
        EXPECT_NE(first.id(), second.id());
        EXPECT_EQ(first.size(), 1000u);
        EXPECT_TRUE(std::ranges::all_of(first.local(), [](auto word) { return word == 0; }));
        EXPECT_TRUE(std::ranges::all_of(large.local(), [](auto cell) { return cell == 0; }));
        first[999] = 5 + engine.node();
        good(engine.barrier());
        for (Node node = 0; node < 3; ++node) EXPECT_EQ(good(engine.memory().read(first.at(node, 999))), 5 + node);
        EXPECT_EQ(first.here(7), first.at(engine.node(), 7));
        good(engine.barrier());
    });
}

TEST_P(MemoryPromises, a_heap_grows_and_its_memory_is_reached_by_pointers_that_were_sent) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const auto pointers = good(engine.memory().segment<global_ptr<std::uint64_t>>(60));
        const Node next = (engine.node() + 1) % 3, before = (engine.node() + 2) % 3;
        std::vector<global_ptr<std::uint64_t>> mine;
        for (std::size_t i = 0; i < 60; ++i) {
            mine.push_back(good(engine.memory().allocate<std::uint64_t>(i % 7 == 0 ? 50'000 : 1 + i)));
            EXPECT_EQ(mine.back().node(), engine.node());
            good(engine.memory().write(pointers.at(next, i), mine.back()));
        }
        settle(engine);
        for (std::size_t i = 0; i < 60; ++i) {
            EXPECT_EQ(pointers[i].node(), before);
            good(engine.memory().write(pointers[i], engine.node() * 1000 + i));
        }
        settle(engine);
        for (std::size_t i = 0; i < 60; ++i) {
            const std::uint64_t* const word = engine.memory().local(mine[i]);
            ASSERT_NE(word, nullptr);
            EXPECT_EQ(*word, next * 1000 + i);
            EXPECT_EQ(good(engine.memory().read(mine[i])), next * 1000 + i);
        }
        good(engine.barrier());
        for (const auto& pointer : mine) good(engine.memory().release(pointer));
        const auto again = good(engine.memory().allocate<std::uint64_t>(50'000)); // of what was given back
        EXPECT_LE(again.offset(), mine.back().offset());
        good(engine.barrier());
    });
}

TEST_P(MemoryPromises, local_memory_is_memory_of_this_node_and_of_those_that_share_it) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const auto words = good(engine.memory().segment<int>(10));
        ASSERT_EQ(engine.memory().local(words.here(3)), &words[3]);
        EXPECT_EQ(engine.memory().local(words.here(3), 8), nullptr) << "it ends before";
        EXPECT_EQ(engine.memory().local(words.at(2, 0)), nullptr) << "no such node";
        const Node other = 1 - engine.node();
        if (int* const theirs = engine.memory().local(words.at(other, 5))) *theirs = 55;
        else good(engine.memory().write(words.at(other, 5), 55));
        settle(engine);
        EXPECT_EQ(words[5], 55);
        good(engine.barrier());
    });
}

TEST_P(MemoryPromises, segments_that_were_given_back_are_refused_and_others_go_on) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const Node other = 1 - engine.node();
        const auto stays = good(engine.memory().segment<std::uint64_t>(100));
        for (int round = 0; round < 5; ++round) {
            const auto gone = good(engine.memory().segment<std::uint64_t>(100'000));
            EXPECT_EQ(gone[99'999], 0u) << "zeroed, though used before";
            good(engine.barrier());
            good(engine.memory().put(gone.at(other), std::vector<std::uint64_t>(100'000, 7)));
            good(engine.memory().free(gone)); // after what is under way
            expect_error_by_sync(engine, engine.memory().write(gone.at(other), 1), {"segment"});
            expect_error_by_sync(engine, engine.memory().read(gone.at(other)), {"segment"});
            expect_error_by_sync(engine, engine.memory().fetch_add(gone.at(other), 1), {"segment"});
            EXPECT_EQ(engine.memory().local(gone.here()), nullptr);
            good(engine.barrier());
        }
        good(engine.memory().write(stays.at(other, 99), 5));
        settle(engine);
        EXPECT_EQ(stays[99], 5u);
        good(engine.barrier());
    });
}

// ---- puts and gets

TEST_P(MemoryPromises, the_source_of_a_put_may_be_changed_when_the_call_returns) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        settle(engine);
    });
}

TEST_P(MemoryPromises, the_source_of_a_put_that_was_begun_may_be_changed_after_sync) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        constexpr std::size_t bytes = 200'000;
        const auto data = good(memory.segment<std::byte>(bytes));
        auto source = pattern(bytes, 5);
        good(memory.start_put(data.at(1 - engine.node()), source));
        good(engine.sync(deadline()));
        std::ranges::fill(source, std::byte{0xEE});
        good(engine.barrier(deadline()));
        EXPECT_TRUE(is_pattern(data.local(), 5));
        settle(engine);
    });
}

TEST_P(MemoryPromises, an_error_that_only_the_other_node_knows_comes_to_sync_and_of_a_future_to_the_future_alone) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        settle(engine);
    });
}

TEST_P(MemoryPromises, a_future_that_is_dropped_or_timed_out_leaves_its_operation_under_way_and_sync_waits_for_it) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        settle(engine);
    });
}

TEST_P(MemoryPromises, after_cancel_nothing_is_read_for_a_put) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        settle(engine);
    });
}

TEST_P(MemoryPromises, a_put_of_nothing_carries_out_its_notice) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        settle(engine);
    });
}

TEST_P(MemoryPromises, atomic_operations_answer_what_was_there_before_and_refuse_words_that_are_not_aligned) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        settle(engine);
    });
}

TEST_P(MemoryPromises, gets_that_were_begun_are_done_when_their_flags_say_so) {
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

TEST_P(MemoryPromises, copies_run_between_any_two_nodes) {
    run(4, [](Channel& channel) {
        Engine engine = open(channel);
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

TEST_P(MemoryPromises, strided_blocks_go_where_they_should) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        good(engine.barrier());
    });
}

TEST_P(MemoryPromises, pieces_arrive_together_before_their_notice) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        good(engine.barrier());
    });
}

TEST_P(MemoryPromises, a_get_that_was_cancelled_writes_nothing_any_more) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
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
        good(engine.barrier(deadline()));
    });
}

// ---- notification

TEST_P(MemoryPromises, a_flag_has_the_value_that_was_given_and_waits_are_for_that_value) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        const auto flags = good(memory.segment<Flag>(1));
        good(memory.set_flag(flags.at(1 - engine.node()), 42));
        good(memory.wait(flags[0], 42, deadline()));
        expect_code(memory.wait(flags[0], 1, now() + 5ms), ErrorCode::timed_out, {"42"});
        expect_code(memory.wait(flags[0], 1, now() - 1s), ErrorCode::timed_out);
        good(memory.wait(flags[0], 42, now() - 1s)); // it has it already
        settle(engine);
    });
}

TEST_P(MemoryPromises, arrivals_that_came_before_they_were_expected_count) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        const Node other = 1 - engine.node();
        const auto counters = good(memory.segment<Counter>(1));
        const auto words = good(memory.segment<std::uint64_t>(1));
        for (int i = 0; i < 3; ++i) good(memory.write(words.at(other), 1, Notice::count(counters.at(other))));
        settle(engine);
        memory.expect(counters[0], 4);
        EXPECT_EQ(load_flag(counters[0].flag), 0u);
        good(engine.barrier(deadline()));
        good(memory.write(words.at(other), 1, Notice::count(counters.at(other))));
        good(memory.wait(counters[0].flag, 1, deadline()));
        memory.expect(counters[0], 0);
        EXPECT_EQ(load_flag(counters[0].flag), 1u) << "none are missing";
        settle(engine);
    });
}

/// Rounds of data from each node to the next, by whatever carries it, always into the same place.
TEST_P(MemoryPromises, a_flag_is_never_seen_before_its_data) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        constexpr std::size_t largest = 200'000;
        const auto memory = good(engine.memory().segment<std::byte>(largest));
        const auto outgoing = good(engine.memory().segment<std::byte>(largest));
        const auto arrived = good(engine.memory().segment<Flag>(1));
        const auto taken = good(engine.memory().segment<Flag>(1));
        const Node next = (engine.node() + 1) % 3, before = (engine.node() + 2) % 3;
        std::mt19937_64 random(seed()); // the same choices everywhere
        for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(40 * scale); ++round) {
            const std::size_t bytes = random() % 3 == 0 ? random() % largest : random() % 300;
            fill_pattern(outgoing.local().first(bytes), round + engine.node());
            const Bytes source = outgoing.local().first(bytes);
            const Notice notice = Notice::set(arrived.at(next), round);
            switch (random() % 4) {
            case 0: good(engine.memory().put(memory.at(next), source, notice)); break;
            case 1: good(engine.memory().start_put(memory.at(next), source, notice)); break;
            case 2: good(engine.memory().copy(outgoing.here(), memory.at(next), bytes, notice)); break;
            default: // flags go after what was put before
                good(engine.memory().put(memory.at(next), source));
                good(engine.memory().set_flag(arrived.at(next), round));
            }
            good(engine.memory().wait(arrived[0], round, deadline()));
            ASSERT_TRUE(is_pattern(memory.local().first(bytes), round + before))
                << bytes << " bytes in round " << round;
            good(engine.memory().set_flag(taken.at(before), round));
            good(engine.memory().wait(taken[0], round, deadline()));
            good(engine.sync());
        }
        good(engine.barrier());
    });
}

TEST_P(MemoryPromises, a_wait_that_is_in_vain_ends_at_its_deadline) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const auto flags = good(engine.memory().segment<Flag>(1));
        const Instant end = now() + 20ms;
        expect_error(engine.memory().wait(flags[0], 5, end), {});
        EXPECT_GE(now(), end);
        EXPECT_FALSE(engine.wait_until([] { return false; }, now() + 10ms));
        good(engine.barrier());
    });
}

/// What went wrong elsewhere is told to the thread that caused it, when it waits; the others get what they wait for.
TEST_P(MemoryPromises, an_error_ends_the_wait_of_the_thread_that_caused_it_and_no_other) {
    run(2, [](Channel& channel) {
        std::atomic<int> failed{0};
        Handlers handlers;
        const auto fail = handlers.add("fail", [](Call&) { throw std::runtime_error("on purpose"); });
        Engine engine = open(channel, std::move(handlers));
        constexpr std::size_t threads = 4;
        const auto flags = good(engine.memory().segment<Flag>(threads));
        const auto ready = good(engine.memory().segment<Flag>(1));
        if (engine.node() == 0) {
            std::vector<std::thread> all;
            for (std::size_t thread = 0; thread < threads; ++thread)
                all.emplace_back([&, thread] {
                    const bool is_to_fail = thread == 2;
                    EXPECT_TRUE(!is_to_fail || engine.send(1, fail));
                    const auto waited = engine.memory().wait(flags[thread], 1, deadline());
                    EXPECT_EQ(waited.has_value(), !is_to_fail);
                    if (!waited) expect_error(waited, {"on purpose"}), ++failed;
                    else EXPECT_EQ(load_flag(flags[thread]), 1u);
                });
            while (failed == 0 && now() < deadline()) std::this_thread::sleep_for(1ms);
            good(engine.memory().set_flag(ready.at(1)));
            for (std::thread& thread : all) thread.join();
            EXPECT_EQ(failed, 1);
        } else {
            good(engine.memory().wait(ready[0], 1, deadline()));
            for (std::size_t thread = 0; thread < threads; ++thread)
                good(engine.memory().set_flag(flags.at(0, thread)));
        }
        settle(engine);
    });
}

TEST_P(MemoryPromises, a_counter_sets_its_flag_at_exactly_as_many_arrivals_as_were_expected) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const auto words = good(engine.memory().segment<std::uint64_t>(1));
        const auto counters = good(engine.memory().segment<Counter>(1));
        const Node other = 1 - engine.node();
        for (std::int64_t expected = 1; expected <= 12; ++expected) {
            const std::int64_t early = expected / 3; // arrivals before they are expected
            for (std::int64_t i = 0; i < early; ++i)
                good(engine.memory().write(words.at(other), 1, Notice::count(counters.at(other))));
            settle(engine);
            engine.memory().expect(counters[0], expected);
            EXPECT_EQ(load_flag(counters[0].flag), expected == early ? 1u : 0u);
            good(engine.barrier());
            for (std::int64_t i = early; i < expected; ++i) {
                EXPECT_EQ(load_flag(counters[0].flag), 0u) << i << " of " << expected;
                good(engine.barrier());
                good(engine.memory().write(words.at(other), 1, Notice::count(counters.at(other))));
                settle(engine);
            }
            EXPECT_EQ(load_flag(counters[0].flag), 1u);
            EXPECT_EQ(counters[0].missing, 0);
            good(engine.barrier());
        }
    });
}

// ---- rendezvous

TEST_P(MemoryPromises, an_offer_may_be_empty_smaller_than_its_target_and_for_this_node_itself) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        for (const Node partner : {engine.node(), 1 - engine.node()})
            for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, std::size_t{100'000}}) {
                const auto source = pattern(bytes, bytes);
                std::vector<std::byte> target(bytes + 3, std::byte{0xAA});
                Flag given = 5, arrived = 5;
                good(memory.offer(9, partner, source, &given, 5)); // they have that value already, and lose it
                good(memory.accept(9, partner, target, &arrived, 5));
                good(memory.wait(arrived, 5, deadline()));
                good(memory.wait(given, 5, deadline()));
                EXPECT_TRUE(is_pattern(Bytes(target).first(bytes), bytes));
                EXPECT_EQ(target[bytes], std::byte{0xAA});
            }
        for (const Node nobody : {Node{2}, ~Node{0}}) {
            expect_code(memory.offer(9, nobody, {}), ErrorCode::not_found);
            expect_code(memory.accept(9, nobody, {}), ErrorCode::not_found);
        }
        settle(engine);
    });
}

TEST_P(MemoryPromises, what_was_never_begun_cannot_be_cancelled) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        auto memory = engine.memory();
        expect_code(memory.cancel(OfferToken{}), ErrorCode::not_found);
        expect_code(memory.cancel(AcceptToken{}, deadline()), ErrorCode::not_found);
        expect_code(memory.cancel(OfferToken{1, 99, 99}), ErrorCode::not_found);
        expect_code(memory.cancel(AcceptToken{1, 99, 99, 99}, deadline()), ErrorCode::not_found);
        settle(engine);
    });
}

TEST_P(MemoryPromises, an_accept_that_a_handler_cancels_writes_nothing_any_more) {
    run(2, [](Channel& channel) {
        std::vector<std::byte> target(1000), later(1000);
        Flag never_set = 0, arrived = 0;
        std::atomic<bool> is_cancelled{false};
        std::optional<AcceptToken> token;
        Handlers handlers;
        const auto cancel = handlers.add("cancel", [&](Call& call) {
            expect_code(call.engine().memory().cancel(*token), ErrorCode::timed_out);
            is_cancelled = true;
        });
        Engine engine = open(channel, std::move(handlers));
        auto memory = engine.memory();
        const Node other = 1 - engine.node();
        const auto source = pattern(1000, 1);
        token = good(memory.accept(4, other, target, &never_set));
        good(engine.barrier(deadline()));
        good(engine.send(engine.node(), cancel));
        EXPECT_TRUE(engine.wait_until([&] { return is_cancelled.load(); }, deadline()));
        settle(engine);
        Flag given = 0;
        const auto offered = good(memory.offer(4, other, source, &given));
        settle(engine);
        EXPECT_TRUE(std::ranges::all_of(target, [](std::byte byte) { return byte == std::byte{0}; }));
        EXPECT_EQ(load_flag(never_set), 0u);
        good(engine.barrier(deadline()));
        good(memory.accept(4, other, later, &arrived)); // nothing had used the offer up: it came later
        good(memory.wait(arrived, 1, deadline()));
        good(memory.wait(given, 1, deadline()));
        expect_code(memory.cancel(offered), ErrorCode::not_found);
        settle(engine);
    });
}

TEST_P(MemoryPromises, offers_of_a_key_are_taken_oldest_first_and_others_do_not_wait_for_them) {
    run(2, [](Channel& channel) {
        constexpr std::uint64_t count = 50;
        const Node other = 1 - channel.self();
        std::array<std::uint64_t, count> contents{}, targets{};
        std::array<Flag, count> given{}, arrived{};
        const std::uint64_t alone = 4711;
        std::uint64_t got_alone = 0;
        Flag alone_given = 0, alone_arrived = 0;
        Engine engine = open(channel);
        for (std::uint64_t i = 0; i < count; ++i) {
            contents[i] = i + 1;
            good(engine.memory().offer(7, other, bytes_of(contents[i]), &given[i]));
        }
        good(engine.memory().offer(8, other, bytes_of(alone), &alone_given));
        good(engine.memory().accept(8, other, std::as_writable_bytes(std::span(&got_alone, 1)), &alone_arrived));
        good(engine.memory().wait(alone_arrived, 1, deadline()));
        EXPECT_EQ(got_alone, alone);
        good(engine.memory().wait(alone_given, 1, deadline()));
        EXPECT_EQ(load_flag(given[0]), 0u) << "nobody has accepted it";
        good(engine.barrier());
        for (std::uint64_t i = 0; i < count; ++i)
            good(engine.memory().accept(7, other, std::as_writable_bytes(std::span(&targets[i], 1)), &arrived[i]));
        for (std::uint64_t i = 0; i < count; ++i) {
            good(engine.memory().wait(arrived[i], 1, deadline()));
            EXPECT_EQ(targets[i], i + 1);
            good(engine.memory().wait(given[i], 1, deadline()));
        }
        good(engine.barrier());
    });
}

TEST_P(MemoryPromises, an_offer_that_does_not_fit_is_an_error_that_tells_both_sizes) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        if (engine.node() == 0) {
            std::vector<std::byte> target(1000, std::byte{0xAA});
            Flag arrived = 0;
            good(engine.memory().accept(3, 1, MutableBytes(target).first(500), &arrived));
            expect_error(engine.memory().wait(arrived, 1, deadline()), {"500", "777"});
            EXPECT_EQ(target[500], std::byte{0xAA});
            EXPECT_EQ(load_flag(arrived), 0u);
        } else {
            const auto content = pattern(777, 1);
            Flag given = 0;
            good(engine.memory().offer(3, 0, content, &given));
            expect_error(engine.memory().wait(given, 1, deadline()), {"500", "777"});
        }
        good(engine.barrier());
    });
}

TEST_P(MemoryPromises, an_accept_is_withdrawn_and_its_memory_is_left_alone) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const auto content = pattern(500'000, 7);
        if (engine.node() == 0) {
            Flag given = 0;
            good(engine.barrier(deadline()));
            good(engine.memory().offer(3, 1, content, &given));
            good(engine.memory().wait(given, 1, deadline()));
        } else {
            std::vector<std::byte> other_use(content.size()), target(content.size());
            Flag never_set = 0, arrived = 0;
            const auto token = good(engine.memory().accept(3, 0, other_use, &never_set));
            good(engine.memory().cancel(token));
            good(engine.barrier(deadline()));
            good(engine.memory().accept(3, 0, target, &arrived));
            good(engine.memory().wait(arrived, 1, deadline()));
            EXPECT_TRUE(is_pattern(target, 7));
            EXPECT_TRUE(std::ranges::all_of(other_use, [](std::byte left) { return left == std::byte{0}; }));
            EXPECT_EQ(load_flag(never_set), 0u);
            const auto twice = engine.memory().cancel(token);
            ASSERT_FALSE(twice);
            EXPECT_EQ(twice.error().code(), ErrorCode::not_found);
        }
        good(engine.sync(deadline()));
        good(engine.barrier(deadline()));
    });
}

TEST_P(MemoryPromises, an_offer_is_withdrawn_and_the_next_one_is_taken) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        if (engine.node() == 0) {
            const auto first = pattern(100'000, 1), second = pattern(100'000, 2);
            Flag never_set = 0, given = 0;
            const auto token = good(engine.memory().offer(3, 1, first, &never_set));
            good(engine.memory().cancel(token));
            const auto next = good(engine.memory().offer(3, 1, second, &given));
            good(engine.barrier(deadline()));
            good(engine.memory().wait(given, 1, deadline()));
            EXPECT_EQ(load_flag(never_set), 0u);
            const auto late = engine.memory().cancel(next);
            ASSERT_FALSE(late);
            EXPECT_EQ(late.error().code(), ErrorCode::not_found) << "it was taken";
        } else {
            std::vector<std::byte> target(100'000);
            Flag arrived = 0;
            good(engine.barrier(deadline()));
            good(engine.memory().accept(3, 0, target, &arrived));
            good(engine.memory().wait(arrived, 1, deadline()));
            EXPECT_TRUE(is_pattern(target, 2));
        }
        good(engine.sync(deadline()));
        good(engine.barrier(deadline()));
    });
}

KUMI_ENGINE_WORLDS(MemoryPromises);

} // namespace
} // namespace kumi::engine_test
