// What engine/global_ptr.hpp promises. What has to do with other nodes runs in every world, the rest once.

#include "engine/node.hpp"

#include <atomic>

namespace kumi::engine_test {
namespace {

TEST(GlobalPtrPromise, a_default_one_is_false_and_any_other_is_true) {
    EXPECT_FALSE(global_ptr<int>());
    EXPECT_TRUE((global_ptr<int>(0, 0, 0)));
    EXPECT_EQ(global_ptr<int>(), global_ptr<int>());
}

TEST(GlobalPtrPromise, it_is_a_plain_value_that_says_where_something_is) {
    static_assert(std::is_trivially_copyable_v<global_ptr<double>>);
    const global_ptr<double> where(3, 7, 40);
    EXPECT_EQ(where.node(), 3u);
    EXPECT_EQ(where.segment(), 7u);
    EXPECT_EQ(where.offset(), 40u);
}

TEST(GlobalPtrPromise, it_counts_in_elements_and_its_offset_in_bytes) {
    const global_ptr<std::uint64_t> begin(1, 2, 80);
    auto at = begin;
    ++at;
    EXPECT_EQ(at.offset(), 88u);
    at += 3;
    EXPECT_EQ(at - begin, 4);
    EXPECT_EQ(begin - at, -4);
    --at;
    at -= 2;
    EXPECT_EQ(at, begin + 1);
    EXPECT_EQ(at, 1 + begin);
    EXPECT_EQ(at - 1, begin);
    EXPECT_EQ((begin + -2).offset(), 64u);
    EXPECT_LT(begin, at);
}

TEST(GlobalPtrPromise, the_same_place_may_be_another_type_and_on_another_node) {
    const global_ptr<std::uint64_t> where(1, 2, 80);
    EXPECT_EQ(where.as<char>(), (global_ptr<char>(1, 2, 80)));
    EXPECT_EQ((where.as<char>() + 3).offset(), 83u);
    EXPECT_EQ(where.on(5), (global_ptr<std::uint64_t>(5, 2, 80)));
}

class GlobalPtrPromises : public EngineTest {};

TEST_P(GlobalPtrPromises, one_that_was_sent_or_stored_is_used_as_it_is) {
    run(3, [](Channel& channel) {
        std::atomic<bool> has_come{false};
        global_ptr<std::uint64_t> told;
        Handlers handlers;
        const auto tell = handlers.add("tell", [&](Call&, global_ptr<std::uint64_t> where) {
            told = where;
            has_come = true;
        });
        Engine engine = open(channel, std::move(handlers));
        auto memory = engine.memory();
        const auto list = good(memory.segment<global_ptr<std::uint64_t>>(1));
        const auto mine = good(memory.allocate<std::uint64_t>());
        *memory.local(mine) = 100 + engine.node();
        list[0] = mine;
        good(engine.barrier(deadline()));
        good(engine.send((engine.node() + 1) % 3, tell, mine));
        EXPECT_TRUE(engine.wait_until([&] { return has_come.load(); }, deadline()));
        EXPECT_EQ(good(memory.read(told)), 100u + (engine.node() + 2) % 3);
        for (Node node = 0; node < 3; ++node)
            EXPECT_EQ(good(memory.read(good(memory.read(list.at(node))))), 100u + node);
        settle(engine);
    });
}

TEST_P(GlobalPtrPromises, one_into_a_freed_segment_is_refused_though_another_segment_was_made_since) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const Node other = 1 - engine.node();
        const auto first = good(memory.segment<std::uint64_t>(8));
        good(memory.free(first));
        const auto second = good(memory.segment<std::uint64_t>(8));
        EXPECT_NE(first.id(), second.id());
        for (const Node node : {engine.node(), other}) {
            expect_error_by_sync(engine, memory.write(first.at(node), 5), {"segment"});
            expect_code(memory.read(first.at(node)), ErrorCode::not_found);
            EXPECT_EQ(memory.local(first.at(node)), nullptr);
        }
        good(engine.barrier(deadline()));
        EXPECT_EQ(second[0], 0u);
    });
}

TEST_P(GlobalPtrPromises, segment_0_is_the_heap_of_each_node) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        const auto mine = good(memory.allocate<std::uint64_t>(4));
        EXPECT_EQ(mine.segment(), 0u);
        EXPECT_EQ(mine.node(), engine.node());
        EXPECT_NE(good(memory.segment<int>(1)).id(), 0u);
    });
}

KUMI_ENGINE_WORLDS(GlobalPtrPromises);

} // namespace
} // namespace kumi::engine_test
