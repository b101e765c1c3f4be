// Flags and counters, in every world.

#include "engine/node.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class Notification : public EngineTest {};

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
