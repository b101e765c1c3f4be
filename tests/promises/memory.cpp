// What engine/memory.hpp promises: each test is one promise, in every world. This file has memory itself, and flags and
// counters. Puts, gets and atomic operations are in memory_transfers.cpp, offers and accepts in memory_rendezvous.cpp.

#include "engine/node.hpp"
#include "loopback/threads.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class MemoryPromises : public EngineTest {};

// ---- segments and heaps

TEST_P(MemoryPromises, memory_of_no_size_is_made_and_freed_as_any_other) {
    run_engines(2, [](Engine& engine) {
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
    });
}

TEST_P(MemoryPromises, more_elements_than_an_address_counts_are_refused_and_not_taken_for_few) {
    run_engines(2, [](Engine& engine) {
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
    });
}

TEST_P(MemoryPromises, heap_memory_is_released_once_and_only_where_it_was_allocated) {
    run_engines(2, [](Engine& engine) {
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
    });
}

TEST_P(MemoryPromises, freeing_a_segment_waits_for_what_was_begun_and_a_second_time_is_an_error) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const auto data = good(memory.segment<std::byte>(500'000));
        const auto content = pattern(data.size(), 1);
        good(memory.start_put(data.at(1 - engine.node()), content));
        good(memory.free(data)); // it would have an error of what came too late
        good(engine.sync(deadline()));
        expect_code(memory.free(data), ErrorCode::not_found);
        expect_code(memory.free(Segment<int>()), ErrorCode::not_found);
    });
}

TEST_P(MemoryPromises, a_segment_is_zeroed_and_alike_on_all_nodes) {
    run_engines(3, [](Engine& engine) {
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
    });
}

TEST_P(MemoryPromises, a_heap_grows_and_its_memory_is_reached_by_pointers_that_were_sent) {
    run_engines(3, [](Engine& engine) {
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
    });
}

TEST_P(MemoryPromises, local_memory_is_memory_of_this_node_and_of_those_that_share_it) {
    run_engines(2, [](Engine& engine) {
        const auto words = good(engine.memory().segment<int>(10));
        ASSERT_EQ(engine.memory().local(words.here(3)), &words[3]);
        EXPECT_EQ(engine.memory().local(words.here(3), 8), nullptr) << "it ends before";
        EXPECT_EQ(engine.memory().local(words.at(2, 0)), nullptr) << "no such node";
        const Node other = 1 - engine.node();
        if (int* const theirs = engine.memory().local(words.at(other, 5))) *theirs = 55;
        else good(engine.memory().write(words.at(other, 5), 55));
        settle(engine);
        EXPECT_EQ(words[5], 55);
    });
}

TEST_P(MemoryPromises, segments_that_were_given_back_are_refused_and_others_go_on) {
    run_engines(2, [](Engine& engine) {
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
    });
}

TEST_P(MemoryPromises, a_null_pointer_is_refused_and_called_so) {
    run_engines(2, [](Engine& engine) {
        std::uint64_t value = 0;
        expect_code(engine.memory().write(global_ptr<std::uint64_t>(), value), ErrorCode::not_found,
                    {"the global_ptr is null"});
        expect_code(engine.memory().read(global_ptr<std::uint64_t>()), ErrorCode::not_found,
                    {"the global_ptr is null"});
    });
}

// ---- notification

TEST_P(MemoryPromises, a_flag_has_the_value_that_was_given_and_waits_are_for_that_or_more_or_exactly_that) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const auto flags = good(memory.segment<Flag>(1));
        good(memory.set_flag(flags.at(1 - engine.node()), 42));
        good(memory.wait(flags[0], 42, deadline()));
        good(memory.wait(flags[0], 1, now() - 1s)); // it has more already
        good(memory.wait(flags[0], 42, now() - 1s));
        good(memory.wait_equal(flags[0], 42, now() - 1s));
        expect_code(memory.wait(flags[0], 43, now() + 5ms), ErrorCode::timed_out, {"42", "43 or more"});
        expect_code(memory.wait(flags[0], 43, now() - 1s), ErrorCode::timed_out);
        expect_code(memory.wait_equal(flags[0], 1, now() + 5ms), ErrorCode::timed_out, {"42", "not 1 "});
        settle(engine); // the other node has looked at its flag, too
        good(memory.set_flag(flags.at(1 - engine.node()), 7));
        good(memory.wait_equal(flags[0], 7, deadline()));
    });
}

TEST_P(MemoryPromises, a_flag_that_counts_past_what_is_waited_for_ends_the_wait) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const auto flags = good(memory.segment<Flag>(1));
        for (Flag i = 1; i <= 5; ++i) good(memory.set_flag(flags.at(1 - engine.node()), i));
        good(engine.sync(deadline()));
        good(engine.barrier(deadline()));
        EXPECT_EQ(load_flag(flags[0]), 5u);
        good(memory.wait(flags[0], 3, deadline()));
    });
}

TEST_P(MemoryPromises, arrivals_that_came_before_they_were_expected_count) {
    run_engines(2, [](Engine& engine) {
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
    });
}

/// Rounds of data from each node to the next, by whatever carries it, always into the same place.
TEST_P(MemoryPromises, a_flag_is_never_seen_before_its_data) {
    run_engines(3, [](Engine& engine) {
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
    });
}

TEST_P(MemoryPromises, a_wait_that_is_in_vain_ends_at_its_deadline) {
    run_engines(2, [](Engine& engine) {
        const auto flags = good(engine.memory().segment<Flag>(1));
        const Instant end = now() + 20ms;
        expect_error(engine.memory().wait(flags[0], 5, end), {});
        EXPECT_GE(now(), end);
        EXPECT_FALSE(engine.wait_until([] { return false; }, now() + 10ms));
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
            EXPECT_TRUE(loopback::comes_true([&] { return failed != 0; }));
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

TEST_P(MemoryPromises, an_error_that_has_ended_a_wait_ends_no_other_and_sync_tells_it_too) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto fail = handlers.add(
            "fail", [](Call&, int number) { throw std::runtime_error("number " + std::to_string(number)); });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        const Flag flag = 0, another = 0;
        good(engine.send(other, fail, 1));
        expect_error(engine.memory().wait(flag, 1, deadline()), {"number 1"});
        expect_code(engine.memory().wait(another, 1, now() + 5ms), ErrorCode::timed_out);
        expect_error(engine.sync(deadline()), {"number 1"});
        good(engine.sync(deadline()));
        // The next error ends the next wait, though no sync() was between.
        for (const int number : {2, 3}) {
            good(engine.send(other, fail, number));
            expect_error(engine.memory().wait(flag, 1, deadline()), {"number " + std::to_string(number)});
        }
        expect_error(engine.sync(deadline()), {"number 3"});
        settle(engine);
    });
}

TEST_P(MemoryPromises, a_counter_sets_its_flag_at_exactly_as_many_arrivals_as_were_expected) {
    run_engines(2, [](Engine& engine) {
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

KUMI_ENGINE_WORLDS(MemoryPromises);

} // namespace
} // namespace kumi::engine_test
