// Flags and counters, in every world.

#include "engine/node.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class Notification : public EngineTest {};

/// Rounds of data from each node to the next, by whatever carries it, always into the same place.
TEST_P(Notification, a_flag_is_never_seen_before_its_data) {
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

TEST_P(Notification, a_flag_can_be_watched_by_a_thread_that_calls_nothing) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const auto memory = good(engine.memory().segment<std::byte>(100'000));
        const auto flags = good(engine.memory().segment<Flag>(1));
        const Node other = 1 - engine.node();
        for (std::uint64_t round = 1; round <= 20; ++round) {
            good(engine.memory().put(memory.at(other), pattern(memory.size(), round),
                                     Notice::set(flags.at(other), round)));
            bool came = false;
            std::thread watcher([&] {
                for (const Instant end = deadline(); !came && now() < end;) {
                    came = load_flag(flags[0]) == round;
                    if (!came) std::this_thread::sleep_for(100us);
                }
                EXPECT_TRUE(is_pattern(memory.local(), round));
            });
            watcher.join(); // and so does this one meanwhile
            ASSERT_TRUE(came);
            settle(engine);
        }
    });
}

TEST_P(Notification, a_wait_that_is_in_vain_ends_at_its_deadline) {
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

TEST_P(Notification, a_thread_that_sleeps_is_woken_by_its_flag) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel, {}, {.spin_max = 0us});
        const auto flags = good(engine.memory().segment<Flag>(1));
        const Node other = 1 - engine.node();
        std::mt19937_64 random(seed() + engine.node());
        for (Flag round = 1; round <= static_cast<Flag>(80 * scale); ++round) {
            if (engine.node() == 1) good(engine.memory().wait(flags[0], round, deadline()));
            for (auto spins = random() % (round % 8 == 0 ? 20'000 : 200); spins > 0; --spins) pm::relax();
            good(engine.memory().set_flag(flags.at(other), round));
            if (engine.node() == 0) good(engine.memory().wait(flags[0], round, deadline()));
        }
        good(engine.barrier());
    });
}

TEST_P(Notification, many_threads_wait_for_a_flag_each) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        constexpr std::size_t threads = 4;
        const Flag rounds = static_cast<Flag>(20 * scale);
        // two each: the other may be ahead by a round, not by two
        const auto flags = good(engine.memory().segment<Flag>(2 * threads));
        const Node other = 1 - engine.node();
        std::vector<std::thread> all;
        for (std::size_t thread = 0; thread < threads; ++thread)
            all.emplace_back([&, thread] {
                try {
                    for (Flag round = 1; round <= rounds; ++round) {
                        const std::size_t index = 2 * thread + round % 2;
                        good(engine.memory().set_flag(flags.at(other, index), round));
                        good(engine.memory().wait(flags[index], round, deadline()));
                    }
                } catch (const Stop&) {
                }
            });
        for (std::thread& thread : all) thread.join();
        settle(engine);
    });
}

/// What went wrong elsewhere is told to the thread that caused it, when it waits; the others get what they wait for.
TEST_P(Notification, an_error_ends_the_wait_of_the_thread_that_caused_it_and_no_other) {
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

TEST_P(Notification, a_counter_sets_its_flag_at_exactly_as_many_arrivals_as_were_expected) {
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

TEST_P(Notification, counters_that_all_nodes_count_up_at_once_miss_nothing) {
    run(4, [](Channel& channel) {
        Engine engine = open(channel);
        const auto words = good(engine.memory().segment<std::uint64_t>(2 * 4)); // by round, and by who writes them
        const auto counters = good(engine.memory().segment<Counter>(2));
        const std::int64_t each = 50;
        for (std::size_t round = 0; round < static_cast<std::size_t>(4 * scale); ++round) {
            for (std::int64_t i = 0; i < each; ++i)
                for (Node to = 0; to < 4; ++to)
                    good(engine.memory().write(words.at(to, round % 2 * 4 + engine.node()),
                                      round * 1000 + static_cast<std::uint64_t>(i),
                                      Notice::count(counters.at(to, round % 2))));
            engine.memory().expect(counters[round % 2], 4 * each);
            good(engine.memory().wait(counters[round % 2].flag, 1, deadline()));
            for (Node from = 0; from < 4; ++from)
                EXPECT_GE(words[round % 2 * 4 + from], round * 1000) << "from node " << from;
        }
        settle(engine);
        EXPECT_EQ(counters[0].missing, 0);
        EXPECT_EQ(counters[1].missing, 0);
        good(engine.barrier());
    });
}

TEST_P(Notification, start_sync_sets_its_flag_when_all_that_was_begun_is_done) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const auto memory = good(engine.memory().segment<std::byte>(300'000 * 3));
        const auto content = pattern(300'000, engine.node());
        std::array<Flag, 3> done{};
        for (std::size_t i = 0; i < 3; ++i) {
            const Node to = static_cast<Node>(engine.node() + i) % 3;
            good(engine.memory().start_put(memory.at(to, engine.node() * content.size()), content));
            good(engine.start_sync(done[i]));
        }
        good(engine.memory().wait(done[2], 1, deadline()));
        for (const Flag& flag : done) EXPECT_EQ(load_flag(flag), 1u) << "they come in order";
        for (Node to = 0; to < 3; ++to) {
            std::vector<std::byte> got(content.size());
            good(engine.memory().get(memory.at(to, engine.node() * content.size()), got));
            EXPECT_EQ(got, content);
        }
        Flag at_once = 0;
        good(engine.start_sync(at_once)); // nothing is under way
        good(engine.memory().wait(at_once, 1, deadline()));
        good(engine.barrier());
    });
}

/// A small message that follows a large transfer is handled before that is over. Where the machine is busy it may be
/// late by chance, so one time of many is enough.
TEST_P(Notification, large_transfers_do_not_hold_up_small_messages) {
    run(2, [](Channel& channel) {
        constexpr std::size_t bytes = 16 << 20;
        Segment<Flag> flags;
        bool answered = false, was_first = false;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&, bool before) { was_first |= before, answered = true; });
        const auto ask =
            handlers.add("ask", [&](Call& call, Flag round) { call.reply(answer, load_flag(flags[0]) != round); });
        Engine engine = open(channel, std::move(handlers));
        const auto memory = good(engine.memory().segment<std::byte>(bytes));
        flags = good(engine.memory().segment<Flag>(1));
        good(engine.barrier());
        const std::vector<std::byte> content(bytes);
        for (Flag round = 1; engine.node() == 0 && round <= 10 && !was_first; ++round) {
            good(engine.memory().start_put(memory.at(1), content, Notice::set(flags.at(1), round)));
            if (good(engine.memory().read(flags.at(1))) == round) break; // such memory is reached at once
            answered = false;
            good(engine.send(1, ask, round));
            EXPECT_TRUE(engine.wait_until([&] { return answered; }, deadline()));
            good(engine.sync());
            EXPECT_TRUE(was_first || round < 10) << "small messages always come last";
        }
        settle(engine);
    });
}

KUMI_ENGINE_WORLDS(Notification);

} // namespace
} // namespace kumi::engine_test
