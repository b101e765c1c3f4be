// What engine/memory.hpp promises of memory that existed before: each test is one promise, in every world.

#include "engine/node.hpp"

#include <numeric>
#include <sys/mman.h>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class ExposedMemory : public EngineTest {};

TEST_P(ExposedMemory, is_reached_as_other_memory_by_every_operation) {
    run_engines(3, [](Engine& engine) {
        auto memory = engine.memory();
        struct Mine {
            std::uint64_t words[100];
            Flag flag;
            Counter counter;
        };
        Mine mine{};
        const auto all = exchange(engine, good(memory.expose(std::span(&mine, 1))));
        const Node next = (engine.node() + 1) % 3, before = (engine.node() + 2) % 3;
        const auto words = all[next].as<std::uint64_t>();
        const auto flag = (all[next].as<std::byte>() + offsetof(Mine, flag)).as<Flag>();
        const auto counter = (all[next].as<std::byte>() + offsetof(Mine, counter)).as<Counter>();
        good(memory.write(words, 40 + engine.node()));
        good(memory.write(words + 99, 50 + engine.node(), Notice::set(flag, 3)));
        good(memory.wait(mine.flag, 3, deadline()));
        EXPECT_EQ(mine.words[0], 40 + before);
        EXPECT_EQ(mine.words[99], 50 + before);
        EXPECT_EQ(good(memory.read(words)), 40 + engine.node());
        EXPECT_EQ(good(memory.fetch_add(words + 1, 7)), 0u);
        EXPECT_EQ(good(memory.fetch_add(words + 1, 1)), 7u);
        EXPECT_EQ(good(memory.async().fetch_add(words + 1, 1).get(deadline())), 8u);
        good(memory.async().put(words + 2, std::vector<std::uint64_t>{1, 2}, Notice::count(counter)).get(deadline()));
        memory.expect(mine.counter, 1);
        good(memory.wait(mine.counter.flag, 1, deadline()));
        EXPECT_EQ(mine.words[3], 2u);
        settle(engine);
        good(memory.copy(words, all[engine.node()].as<std::uint64_t>() + 10, 10));
        good(engine.sync(deadline()));
        EXPECT_EQ(mine.words[10], 40 + engine.node());
        EXPECT_EQ(mine.words[11], 9u);
        EXPECT_EQ(memory.local(all[engine.node()]), &mine);
        EXPECT_EQ(memory.local(all[next]), nullptr);
        settle(engine);
        good(memory.conceal(all[engine.node()]));
    });
}

/// The nodes of one host put by stores, into segments, and by messages, into exposed memory.
TEST_P(ExposedMemory, a_flag_in_a_segment_is_never_seen_before_what_was_put_into_exposed_memory) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        std::vector<std::uint64_t> mine(1000);
        const auto all = exchange(engine, good(memory.expose(mine)));
        const auto arrived = good(memory.segment<Flag>(1));
        const auto taken = good(memory.segment<Flag>(1));
        const Node other = 1 - engine.node();
        for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(100 * scale); ++round) {
            const std::vector<std::uint64_t> values(round % 3 == 0 ? 1000 : 2, round);
            if (round % 3 == 1)
                good(memory.put_strided(all[other].as<std::byte>(), std::as_bytes(std::span(values)).data(),
                                        {8, 2, 8, 24}));
            else good(memory.put(all[other], values));
            good(memory.set_flag(arrived.at(other), round));
            good(memory.wait(arrived[0], round, deadline()));
            ASSERT_EQ(mine[0], round);
            good(memory.set_flag(taken.at(other), round));
            good(memory.wait(taken[0], round, deadline()));
        }
        settle(engine);
        good(memory.conceal(all[engine.node()]));
    });
}

TEST_P(ExposedMemory, a_flag_does_not_go_back_where_some_notices_go_by_messages_and_some_by_stores) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        std::vector<std::uint64_t> mine(1000);
        const auto all = exchange(engine, good(memory.expose(mine)));
        const auto words = good(memory.segment<std::uint64_t>(1));
        const auto flags = good(memory.segment<Flag>(1));
        const Node other = 1 - engine.node();
        for (Flag round = 1; round <= static_cast<Flag>(100 * scale); ++round) {
            good(memory.put(all[other], std::vector<std::uint64_t>(1000, round),
                            Notice::set(flags.at(other), 2 * round - 1)));
            good(memory.write(words.at(other), round, Notice::set(flags.at(other), 2 * round)));
            good(memory.wait(flags[0], 2 * round, deadline()));
            ASSERT_EQ(words[0], round);
            settle(engine);
            ASSERT_EQ(load_flag(flags[0]), 2 * round);
            good(engine.barrier(deadline()));
        }
        good(memory.conceal(all[engine.node()]));
    });
}

TEST_P(ExposedMemory, that_is_concealed_is_refused_and_not_touched) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        std::vector<std::uint64_t> mine(10);
        const auto all = exchange(engine, good(memory.expose(mine)));
        const auto theirs = all[1 - engine.node()], own = all[engine.node()];
        expect_code(memory.conceal(theirs), ErrorCode::misuse, {"the node that has exposed it"});
        expect_code(memory.conceal(global_ptr<int>()), ErrorCode::misuse);
        expect_code(memory.conceal(good(memory.allocate<int>())), ErrorCode::not_found);
        expect_error_by_sync(engine, memory.write(theirs + 10, 1), {"80 bytes are exposed", "8 at 80"});
        expect_code(memory.write(own + 10, 1), ErrorCode::not_found, {"80 bytes are exposed", "8 at 80"});
        settle(engine);
        good(memory.conceal(own + 3));
        good(engine.barrier(deadline()));
        expect_error_by_sync(engine, memory.write(theirs, 1), {"not exposed (any more)"});
        expect_error_by_sync(engine, memory.read(theirs), {"not exposed (any more)"});
        expect_error_by_sync(engine, memory.fetch_add(theirs, 1), {"not exposed (any more)"});
        expect_code(memory.async().put(theirs, std::vector<std::uint64_t>{1}).get(deadline()), ErrorCode::not_found);
        expect_code(memory.write(own, 1), ErrorCode::not_found, {"not exposed (any more)"});
        expect_code(memory.conceal(own), ErrorCode::not_found, {"not exposed (any more)"});
        EXPECT_EQ(memory.local(own), nullptr);
        settle(engine);
        EXPECT_EQ(std::accumulate(mine.begin(), mine.end(), std::uint64_t{0}), 0u);
    });
}

/// A copy that another node has asked for reads the memory in the background.
TEST_P(ExposedMemory, may_be_unmapped_as_soon_as_it_is_concealed) {
    run_engines(3, [](Engine& engine) {
        auto memory = engine.memory();
        constexpr std::size_t bytes = 4 << 20;
        const auto target = good(memory.segment<std::byte>(bytes));
        for (int round = 0; round < 5; ++round) {
            void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            ASSERT_NE(mapped, MAP_FAILED);
            const std::span mine(static_cast<std::byte*>(mapped), bytes);
            const auto all = exchange(engine, good(memory.expose(mine)));
            if (engine.node() == 1) {
                good(memory.copy(all[0], target.at(2), bytes));
                std::vector<std::byte> got(bytes);
                (void)memory.get(all[2], got).has_value(); // it may come too late, as the copy may
                (void)engine.sync(deadline()).has_value();
            } else {
                std::this_thread::sleep_for(round * 1ms);
            }
            good(memory.conceal(all[engine.node()]));
            ::munmap(mapped, bytes);
            good(engine.barrier(deadline()));
        }
    });
}

TEST_P(ExposedMemory, of_another_node_is_not_waited_for_in_a_handler) {
    run(2, [](Channel& channel) {
        std::optional<Result<std::uint64_t>> got;
        std::vector<std::uint64_t> mine(1, 7 + channel.self());
        std::vector<global_ptr<std::uint64_t>> all;
        Handlers handlers;
        Engine* self = nullptr;
        const auto look = handlers.add("look", [&](Call&) { got = self->memory().read(all[1 - self->node()]); });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        all = exchange(engine, good(engine.memory().expose(mine)));
        good(engine.send(engine.node(), look));
        good(engine.sync(deadline()));
        ASSERT_TRUE(got.has_value());
        expect_code(*got, ErrorCode::misuse, {"handler", "async()"});
        EXPECT_EQ(good(engine.memory().read(all[1 - engine.node()])), 8u - engine.node());
        settle(engine);
    });
}

TEST_P(ExposedMemory, atomic_operations_on_a_word_that_is_not_aligned_are_refused) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        alignas(8) std::byte mine[24] = {};
        const auto all = exchange(engine, good(memory.expose(std::span(mine).subspan(1, 16))));
        for (const auto& place : all)
            expect_code(memory.fetch_add(place.as<std::uint64_t>(), 1), ErrorCode::misuse, {"aligned"});
        settle(engine);
        good(memory.conceal(all[engine.node()]));
    });
}

KUMI_ENGINE_WORLDS(ExposedMemory);

} // namespace
} // namespace kumi::engine_test
