// What engine/memory.hpp promises of offers and accepts: each test is one promise, in every world.

#include "engine/node.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

namespace kumi::engine_test {
namespace {

class RendezvousPromises : public EngineTest {};

TEST_P(RendezvousPromises, an_offer_may_be_empty_smaller_than_its_target_and_for_this_node_itself) {
    run_engines(2, [](Engine& engine) {
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
    });
}

TEST_P(RendezvousPromises, what_was_never_begun_cannot_be_cancelled) {
    run_engines(2, [](Engine& engine) {
        auto memory = engine.memory();
        expect_code(memory.cancel(OfferToken{}), ErrorCode::not_found);
        expect_code(memory.cancel(AcceptToken{}, deadline()), ErrorCode::not_found);
        expect_code(memory.cancel(OfferToken{1, 99, 99}), ErrorCode::not_found);
        expect_code(memory.cancel(AcceptToken{1, 99, 99, 99}, deadline()), ErrorCode::not_found);
    });
}

TEST_P(RendezvousPromises, an_accept_that_a_handler_cancels_writes_nothing_any_more) {
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

TEST_P(RendezvousPromises, offers_of_a_key_are_taken_oldest_first_and_others_do_not_wait_for_them) {
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

TEST_P(RendezvousPromises, an_offer_that_does_not_fit_is_an_error_that_tells_both_sizes) {
    run_engines(2, [](Engine& engine) {
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
            expect_error(engine.sync(deadline()), {"500", "777"});
        }
    });
}

TEST_P(RendezvousPromises, an_accept_is_withdrawn_and_its_memory_is_left_alone) {
    run_engines(2, [](Engine& engine) {
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
    });
}

TEST_P(RendezvousPromises, an_offer_is_withdrawn_and_the_next_one_is_taken) {
    run_engines(2, [](Engine& engine) {
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
    });
}

KUMI_ENGINE_WORLDS(RendezvousPromises);

} // namespace
} // namespace kumi::engine_test
