// Requests and replies, in every world.

#include "engine/node.hpp"

#include <atomic>
#include <optional>
#include <stdexcept>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class ActiveMessages : public EngineTest {};

struct Point {
    double x;
    std::int64_t y;
};

TEST_P(ActiveMessages, a_handler_gets_what_was_sent_and_learns_who_sent_it) {
    run(3, [](Channel& channel) {
        std::array<int, 3> calls{};
        Handlers handlers;
        const auto take =
            handlers.add("take", [&](Call& call, std::int8_t a, std::uint64_t b, double c, bool d, Point e, Bytes f) {
                ++calls.at(call.source());
                EXPECT_EQ(a, -5);
                EXPECT_EQ(b, (std::uint64_t{1} << 60) + call.source());
                EXPECT_EQ(c, 0.25);
                EXPECT_TRUE(d);
                EXPECT_EQ(e.x, 1.5);
                EXPECT_EQ(e.y, -2);
                EXPECT_EQ(text_of(f), "a payload");
            });
        const auto nothing = handlers.add("nothing", [&](Call& call) { ++calls.at(call.source()); });
        Engine engine = open(channel, std::move(handlers));
        for (Node to = 0; to < engine.nodes(); ++to) {
            good(engine.send(to, take, std::int8_t{-5}, (std::uint64_t{1} << 60) + engine.node(), 0.25, true,
                             Point{1.5, -2}, bytes_of(std::string_view("a payload"))));
            good(engine.send(to, nothing));
        }
        settle(engine);
        EXPECT_EQ(calls, (std::array{2, 2, 2}));
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, a_payload_of_every_size_arrives_as_it_was_sent) {
    run(2, [](Channel& channel) {
        std::vector<std::size_t> sizes =
            interesting_sizes(std::min<std::size_t>(256 << 10, channel.traits().message_bytes_max - 256) - 8);
        std::size_t next = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, std::uint64_t number, Bytes payload) {
            ASSERT_EQ(number, next);
            EXPECT_EQ(payload.size(), sizes.at(next));
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(payload.data()) % 8, 0u);
            EXPECT_TRUE(is_pattern(payload, next)) << payload.size() << " bytes";
            ++next;
        });
        Engine engine = open(channel, std::move(handlers));
        for (std::size_t i = 0; i < sizes.size(); ++i)
            good(engine.send(1 - engine.node(), take, i, Bytes(pattern(sizes[i], i))));
        settle(engine);
        EXPECT_EQ(next, sizes.size());
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, a_reply_comes_back_to_who_asked) {
    run(3, [](Channel& channel) {
        const std::uint64_t count = 100 * scale;
        std::uint64_t answers = 0, sum = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&, std::uint64_t value, Bytes payload) {
            EXPECT_TRUE(is_pattern(payload, value));
            sum += value, ++answers;
        });
        const auto square = handlers.add("square", [&](Call& call, std::uint64_t value) {
            EXPECT_FALSE(call.has_replied());
            call.reply(answer, value * value, Bytes(pattern(value % 3000, value * value)));
            EXPECT_TRUE(call.has_replied());
        });
        Engine engine = open(channel, std::move(handlers));
        std::uint64_t expected = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            good(engine.send(static_cast<Node>(i % 3), square, i));
            expected += i * i;
        }
        EXPECT_TRUE(engine.wait_until([&] { return answers == count; }, deadline()));
        EXPECT_EQ(sum, expected);
        settle(engine);
    });
}

/// Handlers that use the engine: it is there when the first request comes, since nobody sends before a barrier.
struct Self {
    Engine* engine = nullptr;
};

/// A tree of requests: each makes two more, anywhere.
TEST_P(ActiveMessages, handlers_that_send_more_than_they_get_do_not_deadlock) {
    run(3, [](Channel& channel) {
        constexpr std::uint32_t depth = 9;
        std::uint64_t leaves = 0;
        Self self;
        std::optional<Handler<std::uint32_t>> grow;
        Handlers handlers;
        const auto leaf = handlers.add("leaf", [&](Call&) { ++leaves; });
        grow = handlers.add("grow", [&](Call&, std::uint32_t level) {
            for (const Node step : {1u, 2u}) {
                const Node to = (self.engine->node() + step) % self.engine->nodes();
                if (level == 0) good(self.engine->send(0, leaf));
                else good(self.engine->send(to, *grow, level - 1));
            }
        });
        Engine engine = open(channel, std::move(handlers));
        self.engine = &engine;
        good(engine.barrier());
        good(engine.send(engine.node(), *grow, depth));
        if (engine.node() == 0) {
            const std::uint64_t all = engine.nodes() * (std::uint64_t{2} << depth);
            EXPECT_TRUE(engine.wait_until([&] { return leaves == all; }, deadline())) << leaves << " of " << all;
        }
        good(engine.barrier());
    });
}

TEST_P(ActiveMessages, storms_of_requests_and_replies_in_both_directions_do_not_deadlock) {
    run(3, [](Channel& channel) {
        const std::uint64_t count = 1'000 * scale;
        std::uint64_t answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&, Bytes) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call, Bytes payload) { call.reply(answer, payload); });
        Engine engine = open(channel, std::move(handlers));
        std::mt19937_64 random(seed() + engine.node());
        const std::vector<std::byte> payload(4000);
        for (std::uint64_t i = 0; i < count; ++i)
            good(engine.send(static_cast<Node>(random() % 3), ask,
                             Bytes(payload).first(random() % 10 == 0 ? random() % 4000 : random() % 50)));
        EXPECT_TRUE(engine.wait_until([&] { return answers == count; }, deadline())) << answers << " of " << count;
        settle(engine);
    });
}

TEST_P(ActiveMessages, a_handler_may_put_and_reply_what_it_read) {
    run(3, [](Channel& channel) {
        int answers = 0;
        Self self;
        Segment<std::uint64_t> words;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call& call, std::uint64_t value) {
            EXPECT_EQ(value, call.source() * 10u);
            ++answers;
        });
        const auto ask = handlers.add("ask", [&](Call& call) {
            good(self.engine->memory().write(words.at(call.source(), 1 + self.engine->node()), words[0]));
            call.reply(answer, words[0]);
        });
        Engine engine = open(channel, std::move(handlers));
        self.engine = &engine;
        words = good(engine.memory().segment<std::uint64_t>(4));
        words[0] = engine.node() * 10u;
        good(engine.barrier());
        for (Node to = 0; to < 3; ++to) good(engine.send(to, ask));
        EXPECT_TRUE(engine.wait_until([&] { return answers == 3; }, deadline()));
        settle(engine);
        for (Node from = 0; from < 3; ++from) EXPECT_EQ(words[1 + from], from * 10u);
        good(engine.barrier());
    });
}

KUMI_ENGINE_WORLDS(ActiveMessages);

} // namespace
} // namespace kumi::engine_test
