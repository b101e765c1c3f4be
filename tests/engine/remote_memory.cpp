// Segments, heaps, and what is copied between them, in every world.

#include "engine/node.hpp"
#include "engine/random_memory.hpp"

#include <algorithm>
#include <numeric>

namespace kumi::engine_test {
namespace {

class RemoteMemory : public EngineTest {};

TEST_P(RemoteMemory, a_segment_is_zeroed_and_alike_on_all_nodes) {
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

TEST_P(RemoteMemory, gets_that_were_begun_are_done_when_their_flags_say_so) {
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

TEST_P(RemoteMemory, copies_run_between_any_two_nodes) {
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

TEST_P(RemoteMemory, strided_blocks_go_where_they_should) {
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

TEST_P(RemoteMemory, pieces_arrive_together_before_their_notice) {
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

TEST_P(RemoteMemory, a_heap_grows_and_its_memory_is_reached_by_pointers_that_were_sent) {
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

TEST_P(RemoteMemory, local_memory_is_memory_of_this_node_and_of_those_that_share_it) {
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
        const std::int64_t count = 100 * scale;
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

TEST_P(RemoteMemory, segments_that_were_given_back_are_refused_and_others_go_on) {
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
