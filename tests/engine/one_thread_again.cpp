// Whole jobs in one thread, by seed: what is given up, tried again and withdrawn.

#include "engine/one_thread.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace kumi::engine_test {
namespace {

/// The most that a node sends from when a node is lost until all others know that a barrier lacks it.
std::uint64_t messages_after_a_loss(Node nodes, Node nodes_per_host) {
    OneThread world({.nodes = nodes, .seed = 1});
    if (nodes_per_host != 0) world.share_memory(nodes_per_host);
    const Node victim = nodes / 2 + 1; // not the first of a host
    Node met = 0, done = 0;
    std::uint64_t most = 0;
    world.run([&](Channel& channel) {
        auto setup = world.setup();
        setup.keepalive_every = std::chrono::hours(1); // what they cost is another question
        Engine engine = open(channel, {}, setup);
        world.agree(engine);
        const auto sent = [&] {
            std::uint64_t all = 0;
            for (Node node = 0; node < nodes; ++node) all += channel.sent(node).messages;
            return all;
        };
        good(engine.barrier());
        ++met;
        engine.wait_until([&] { return met == nodes; });
        if (channel.self() == victim) return world.lose(victim);
        const std::uint64_t before = sent();
        const auto all = engine.barrier();
        expect_error(all, {"node " + std::to_string(victim) + " "});
        EXPECT_TRUE(!all && all.error().code() == ErrorCode::node_lost);
        ++done;
        int looks = 0;
        engine.wait_until([&] { return done == nodes - 1 && ++looks > 100; });
        most = std::max(most, sent() - before);
    });
    return most;
}

TEST(OneThread, after_a_loss_a_node_sends_no_more_than_a_logarithm_of_messages) {
#if defined(KUMI_THREAD_SANITIZER)
    KUMI_SKIP(skips::one_thread);
#endif
    for (const Node nodes : {8u, 64u, 256u}) {
        if (sanitized && nodes > 64) continue;
        const auto rounds = static_cast<std::uint64_t>(std::bit_width(nodes - 1));
        EXPECT_LE(messages_after_a_loss(nodes, 0), 2 * rounds) << nodes << " nodes: steps, and who is told";
        // Those of a host hear it from its first node, and wake each other.
        EXPECT_LE(messages_after_a_loss(nodes, 4), 3 * rounds) << nodes << " nodes, four on each host";
    }
}

TEST(OneThread, a_barrier_that_timed_out_is_complete_when_all_have_come_to_it_however_often_it_is_tried) {
    engine_test::for_each_seed(60, [](std::uint64_t seed) {
        const auto options = engine_test::options_of(seed, 6);
        std::mt19937_64 fate(seed + 4000);
        OneThread world(options);
        if (fate() % 2 == 0) world.share_memory(static_cast<Node>(1 + fate() % options.nodes));
        constexpr std::size_t barriers = 40;
        std::vector<Node> come(barriers);
        std::uint64_t late = 0;
        world.run([&](Channel& channel) {
            Engine engine = open(channel, {}, world.setup());
            world.agree(engine);
            std::mt19937_64 random(seed * 31 + engine.node());
            for (std::size_t i = 0; i < barriers; ++i) {
                for (auto polls = random() % 50; polls > 0; --polls) engine.poll();
                ++come[i];
                for (bool is_complete = false; !is_complete;) {
                    const auto all = engine.barrier(random() % 3 == 0 ? never : now());
                    is_complete = all.has_value();
                    EXPECT_TRUE(!is_complete || come[i] == engine.nodes()) << "barrier " << i;
                    EXPECT_TRUE(is_complete || all.error().code() == ErrorCode::timed_out) << all.error().text();
                    late += is_complete ? 0 : 1;
                }
            }
            good(engine.barrier());
        });
        EXPECT_GT(late, 0u);
    });
}

/// Node 0 offers, and node 1 accepts; both withdraw some at any time. The first byte of a content tells its number.
TEST(OneThread, withdrawn_accepts_leave_memory_alone_and_offers_that_are_taken_arrive_whole) {
    std::uint64_t taken = 0, withdrawn = 0, half_taken = 0;
    engine_test::for_each_seed(60, [&](std::uint64_t seed) {
        OneThread world(engine_test::options_of(seed, 1));
        constexpr std::size_t count = 40, most = 300'000;
        std::array<std::size_t, count> sizes{};
        bool is_over = false;
        const auto offer_all = [&](Engine& engine, std::mt19937_64& random) {
            struct Offered {
                std::vector<std::byte> bytes;
                Flag flag = 0;
                OfferToken token;
            };
            std::array<Offered, count> offers;
            for (std::size_t i = 0; i < count; ++i) {
                sizes[i] = 1 + random() % (random() % 3 == 0 ? most : 100);
                offers[i].bytes = pattern(sizes[i], i);
                offers[i].token = good(engine.memory().offer(1, 1, offers[i].bytes, &offers[i].flag));
                for (auto polls = random() % 100; polls > 0; --polls) engine.poll();
                Offered& any = offers[random() % (i + 1)];
                if (random() % 3 != 0 || load_flag(any.flag) != 0) continue;
                good(engine.memory().cancel(any.token));
                std::ranges::fill(any.bytes, std::byte{0}); // nobody reads it any more
                any.flag = 2;
                ++withdrawn;
            }
            engine.wait_until([&] { return is_over; });
            for (const Offered& offered : offers) (void)engine.memory().cancel(offered.token);
        };
        const auto accept_all = [&](Engine& engine, std::mt19937_64& random) {
            std::size_t next = 0;
            std::vector<std::byte> target(most);
            for (int i = 0; i < 150; ++i) {
                std::memset(target.data(), 0xEE, most);
                Flag flag = 0;
                const auto token = good(engine.memory().accept(1, 0, target, &flag));
                for (auto polls = random() % (random() % 2 == 0 ? 300 : 20); polls > 0 && load_flag(flag) == 0; --polls)
                    engine.poll();
                if (engine.memory().cancel(token)) {
                    EXPECT_EQ(load_flag(flag), 0u);
                    half_taken += target[0] != std::byte{0xEE} ? 1 : 0;
                    const auto kept = target;
                    for (auto polls = random() % 300; polls > 0; --polls) engine.poll();
                    EXPECT_EQ(std::memcmp(target.data(), kept.data(), most), 0) << "written after it was withdrawn";
                } else if (load_flag(flag) != 1) {
                    if (const auto why = engine.sync(); !why) expect_error(why, {"withdrawn while it was sent"});
                } else {
                    while (next < count && !is_pattern(Bytes(target).first(1), next)) ++next;
                    ASSERT_LT(next, count) << "older than the last one, or none";
                    EXPECT_TRUE(is_pattern(Bytes(target).first(sizes[next]), next));
                    EXPECT_TRUE(std::ranges::all_of(Bytes(target).subspan(sizes[next++]),
                                                    [](std::byte left) { return left == std::byte{0xEE}; }));
                    ++taken;
                }
            }
            is_over = true;
        };
        world.run([&](Channel& channel) {
            Engine engine = open(channel, {}, world.setup());
            std::mt19937_64 random(seed + engine.node());
            if (engine.node() == 0) offer_all(engine, random);
            else accept_all(engine, random);
            good(engine.barrier());
        });
    });
    if (testing::Test::IsSkipped() || simulation::wanted_seeds(60).count < 10) return;
    EXPECT_GT(taken, 0u);
    EXPECT_GT(withdrawn, 0u);
    EXPECT_GT(half_taken, 0u) << "none was withdrawn in the middle";
}

/// Numbers of segments begin anew, with another generation, while both nodes make and free some.
TEST(OneThread, segments_are_made_and_freed_longer_than_their_numbers_last) {
#if defined(KUMI_THREAD_SANITIZER)
    KUMI_SKIP(skips::one_thread);
#endif
    OneThread world({.nodes = 2, .seed = 1});
    world.run([&](Channel& channel) {
        Engine engine = open(channel, {}, world.setup());
        const auto lasting = good(engine.memory().segment<std::uint64_t>(1));
        auto old = good(engine.memory().segment<std::uint64_t>(1));
        const auto first = old;
        {
            // As if it had been done by the engine, which takes long: no node has memory for these.
            engine::MemoryMap& map = engine.dispatcher().segments().map();
            for (SegmentId i = 10; i < engine::MemoryMap::segments_max; ++i) ASSERT_FALSE(map.make(~std::uint64_t{0}));
        }
        const Node other = 1 - engine.node();
        good(engine.memory().free(good(engine.memory().segment<std::uint64_t>(0)))); // one of no bytes, too
        for (std::uint64_t i = 0; i < 30; ++i) {
            const auto next = good(engine.memory().segment<std::uint64_t>(1));
            EXPECT_NE(next.id(), old.id());
            good(engine.memory().free(old));
            expect_error_by_sync(engine, engine.memory().write(old.at(other), 1), {"no segment"});
            good(engine.memory().write(next.at(other), i + 1));
            good(engine.memory().write(lasting.at(other), i + 100));
            settle(engine);
            EXPECT_EQ(next[0], i + 1);
            EXPECT_EQ(lasting[0], i + 100);
            settle(engine);
            old = next;
        }
        EXPECT_GT(old.id(), engine::MemoryMap::segments_max) << "of another generation";
        expect_error_by_sync(engine, engine.memory().write(first.at(other), 1), {"no segment"});
        settle(engine);
    });
}

/// One node asks for what no machine has: all are refused, and the next segment has one number on all nodes.
TEST(OneThread, a_segment_that_is_too_large_on_one_node_uses_up_its_number_on_all) {
    engine_test::for_each_seed(5, [](std::uint64_t seed) {
        OneThread world({.nodes = 3, .seed = seed});
        world.run([&](Channel& channel) {
            Engine engine = open(channel, {}, world.setup());
            const auto none = engine.memory().segment<std::uint64_t>(engine.node() == 1 ? ~std::size_t{0} : 1);
            ASSERT_FALSE(none);
            EXPECT_EQ(none.error().code(), engine.node() == 1 ? ErrorCode::too_large : ErrorCode::no_memory);
            const auto next = good(engine.memory().segment<std::uint64_t>(1));
            good(engine.memory().write(next.at((engine.node() + 1) % 3), 4711));
            settle(engine);
            EXPECT_EQ(next[0], 4711u);
            settle(engine);
        });
    });
}

} // namespace
} // namespace kumi::engine_test
