// What engine/handlers.hpp promises of handlers: each test is one promise, in every world. Of functions: functions.cpp.
// That nodes agree on their handlers, and call.job(): job.cpp.

#include "engine/node.hpp"

#include <array>
#include <atomic>
#include <limits>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class HandlerPromises : public EngineTest {};

TEST_P(HandlerPromises, parameters_of_every_kind_arrive_as_they_were_sent) {
    struct Several {
        std::int8_t small;
        double number;
        std::array<char, 3> letters;
    };
    run(2, [](Channel& channel) {
        std::atomic<int> handled{0};
        Handlers handlers;
        // A char is signed on some architectures and not on others: what travels is its bits.
        const auto take = handlers.add("take", [&](Call&, char letter, signed char low, unsigned char high,
                                                   bool is_true, std::int64_t large, float real, Several several) {
            EXPECT_EQ(letter, static_cast<char>(0xE9));
            EXPECT_EQ(low, -128);
            EXPECT_EQ(high, 255);
            EXPECT_TRUE(is_true);
            EXPECT_EQ(large, std::numeric_limits<std::int64_t>::min());
            EXPECT_EQ(real, 0.5f);
            EXPECT_EQ(several.small, -1);
            EXPECT_EQ(several.number, 1e300);
            EXPECT_EQ(several.letters[2], 'c');
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        for (const Node to : {Node{0}, Node{1}})
            good(engine.send(to, take, static_cast<char>(0xE9), static_cast<signed char>(-128),
                             static_cast<unsigned char>(255), true, std::numeric_limits<std::int64_t>::min(), 0.5f,
                             Several{-1, 1e300, {'a', 'b', 'c'}}));
        EXPECT_TRUE(engine.wait_until([&] { return handled == 2; }, deadline()));
        settle(engine);
    });
}

TEST_P(HandlerPromises, a_handle_of_another_handlers_object_is_refused) {
    run(2, [](Channel& channel) {
        Handlers others;
        const auto of_others = others.add("take", [](Call&, double) {});
        const auto function_of_others = others.function("ask", [](double value) { return value; });
        std::atomic<int> handled{0};
        Handlers first;
        const auto take = first.add("take", [&](Call&, std::int64_t value) { handled += value == 5; });
        const auto reply = first.add("reply", [&](Call& call) { call.reply(of_others, 1.5); });
        const auto ask = first.function("ask", [](std::int64_t value) { return value; });
        Handlers moved = std::move(first);                   // with its handles
        const auto added = first.add("added", [](Call&) {}); // to an object that was moved from
        Engine engine = open(channel, std::move(moved));
        const Node next = 1 - engine.node();
        expect_code(engine.send(next, of_others, 1.5), ErrorCode::misuse, {"another Handlers object"});
        expect_code(engine.send(next, added), ErrorCode::misuse, {"another Handlers object"});
        expect_code(engine.invoke(next, function_of_others, 1.5).get(deadline()), ErrorCode::misuse,
                    {"function ask", "another Handlers object"});
        good(engine.sync(deadline()));
        good(engine.send(next, reply));
        expect_code(engine.sync(deadline()), ErrorCode::misuse, {"reply", "another Handlers object"});
        good(engine.send(next, take, 5));
        EXPECT_EQ(good(engine.invoke(next, ask, 7).get(deadline())), 7);
        EXPECT_TRUE(engine.wait_until([&] { return handled == 1; }, deadline()));
        settle(engine);
    });
}

TEST_P(HandlerPromises, a_payload_is_aligned_to_8_bytes_and_may_be_empty) {
    run(2, [](Channel& channel) {
        std::size_t handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, std::uint8_t size, Bytes payload) {
            EXPECT_EQ(payload.size(), size);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(payload.data()) % 8, 0u) << payload.size();
            EXPECT_TRUE(is_pattern(payload, size));
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        constexpr std::size_t sizes = 40;
        for (std::uint8_t size = 0; size < sizes; ++size)
            for (const Node to : {Node{0}, Node{1}}) good(engine.send(to, take, size, Bytes(pattern(size, size))));
        EXPECT_TRUE(engine.wait_until([&] { return handled == 2 * sizes; }, deadline()));
        settle(engine);
    });
}

TEST_P(HandlerPromises, a_request_of_the_largest_size_arrives_and_one_byte_more_is_refused) {
    run(2, [](Channel& channel) {
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, std::uint64_t, Bytes payload) {
            EXPECT_TRUE(is_pattern(payload, 3));
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        const std::size_t most = engine.message_bytes_max() - sizeof(std::uint64_t); // beside the argument
        EXPECT_LE(engine.message_bytes_max(), 256u << 10);
        const auto content = pattern(most + 1, 3);
        for (const Node to : {Node{0}, Node{1}}) {
            good(engine.send(to, take, std::uint64_t{1}, Bytes(content).first(most)));
            expect_code(engine.send(to, take, std::uint64_t{1}, Bytes(content)), ErrorCode::too_large,
                        {"take", "node " + std::to_string(to), "largest",
                         "sending " + std::to_string(engine.message_bytes_max() + 1) + " B to"});
        }
        for (const Node nobody : {Node{2}, ~Node{0}})
            expect_code(engine.send(nobody, take, std::uint64_t{1}, Bytes()), ErrorCode::not_found,
                        {"node " + std::to_string(nobody)});
        EXPECT_TRUE(engine.wait_until([&] { return handled == 2; }, deadline())) << handled;
        settle(engine);
    });
}

TEST_P(HandlerPromises, a_reply_calls_a_handler_on_the_source_and_the_call_knows_it) {
    run(3, [](Channel& channel) {
        std::atomic<int> answers{0};
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call& call, Node asked) {
            EXPECT_EQ(call.source(), asked);
            ++answers;
        });
        const auto ask = handlers.add("ask", [&](Call& call) {
            EXPECT_FALSE(call.has_replied());
            call.reply(answer, call.engine().node());
            EXPECT_TRUE(call.has_replied());
        });
        Engine engine = open(channel, std::move(handlers));
        for (Node to = 0; to < 3; ++to) good(engine.send(to, ask));
        EXPECT_TRUE(engine.wait_until([&] { return answers == 3; }, deadline()));
        settle(engine);
    });
}

TEST_P(HandlerPromises, a_handler_that_throws_after_its_reply_has_replied_and_the_source_is_told) {
    run(2, [](Channel& channel) {
        std::atomic<int> answers{0};
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call) {
            call.reply(answer);
            throw std::runtime_error("too late");
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.send(1 - engine.node(), ask));
        expect_code(engine.sync(deadline()), ErrorCode::refused, {"ask", "too late"});
        EXPECT_TRUE(engine.wait_until([&] { return answers == 1; }, deadline()));
        settle(engine);
    });
}

TEST_P(HandlerPromises, a_handler_that_sends_to_its_own_node_has_ended_before_that_is_handled) {
    run(2, [](Channel& channel) {
        std::atomic<bool> is_inside{false};
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto inner = handlers.add("inner", [&](Call&) {
            EXPECT_FALSE(is_inside);
            ++handled;
        });
        const auto outer = handlers.add("outer", [&](Call& call) {
            is_inside = true;
            good(call.engine().send(call.engine().node(), inner));
            is_inside = false;
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.send(1 - engine.node(), outer));
        EXPECT_TRUE(engine.wait_until([&] { return handled == 1; }, deadline()));
        settle(engine);
    });
}

TEST_P(HandlerPromises, a_handler_that_throws_is_told_to_the_sender_and_harms_nobody) {
    run(2, [](Channel& channel) {
        int answers = 0;
        Handlers handlers;
        const auto fails = handlers.add(
            "table.find", [&](Call&, int key) { throw std::out_of_range("no key " + std::to_string(key)); });
        const auto fails_oddly = handlers.add("odd", [&](Call&) { throw 5; });
        const auto fails_clearly =
            handlers.add("clear", [&](Call&) { throw Error(ErrorCode::not_found, "no such thing"); });
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call) { call.reply(answer); });
        Engine engine = open(channel, std::move(handlers));
        if (engine.node() == 0) {
            expect_error_by_sync(engine, engine.send(1, fails, 77), {"node 1", "table.find", "no key 77"});
            expect_error_by_sync(engine, engine.send(0, fails, 78), {"node 0", "table.find", "no key 78"});
            expect_error_by_sync(engine, engine.send(1, fails_oddly), {"node 1", "odd"});
            good(engine.send(1, fails_clearly));
            expect_code(engine.sync(deadline()), ErrorCode::not_found,
                        {"node 1", "handler clear threw: no such thing"});
            good(engine.send(1, ask));
            EXPECT_TRUE(engine.wait_until([&] { return answers == 1; }, deadline()));
        }
        good(engine.sync());
        good(engine.barrier());
    });
}

TEST_P(HandlerPromises, a_second_reply_and_a_reply_to_a_reply_are_told_to_the_sender) {
    run(2, [](Channel& channel) {
        int answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto twice = handlers.add("twice", [&](Call& call) { call.reply(answer), call.reply(answer); });
        const auto back = handlers.add("back", [&](Call& call) { call.reply(answer); });
        const auto forth = handlers.add("forth", [&](Call& call) { call.reply(back); });
        Engine engine = open(channel, std::move(handlers));
        if (engine.node() == 0) {
            expect_error_by_sync(engine, engine.send(1, twice), {"node 1", "twice"});
            EXPECT_TRUE(engine.wait_until([&] { return answers == 1; }, deadline()));
            good(engine.send(1, forth)); // node 1 is told: it sent what node 0 cannot answer
        } else {
            auto told = engine.sync(deadline());
            for (const Instant end = deadline(); told && now() < end; told = engine.sync(end))
                std::this_thread::sleep_for(1ms);
            expect_error(told, {"node 0", "back"});
        }
        good(engine.sync(deadline()));
        good(engine.barrier());
    });
}

TEST_P(HandlerPromises, a_handler_reaches_its_engine_which_stays_the_same_when_the_program_moves_its_own) {
    run(2, [](Channel& channel) {
        int answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call) { good(call.engine().send(call.source(), answer)); });
        Engine first = open(channel, std::move(handlers));
        good(first.barrier(deadline()));
        good(first.send(1 - first.node(), ask));
        Engine engine = std::move(first);
        good(engine.send(1 - engine.node(), ask));
        EXPECT_TRUE(engine.wait_until([&] { return answers == 2; }, deadline()));
        settle(engine);
    });
}

TEST_P(HandlerPromises, a_reply_that_is_too_large_fails_at_the_node_that_asked_also_if_the_handler_is_noexcept) {
    run(2, [](Channel& channel) {
        int answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&, Bytes) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call, std::uint64_t more) noexcept {
            call.reply(answer, Bytes(std::vector<std::byte>(call.engine().message_bytes_max() + more)));
            EXPECT_TRUE(call.has_replied());
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        const Node other = 1 - engine.node();
        good(engine.send(other, ask, std::uint64_t{1}));
        const auto told = engine.sync(deadline());
        expect_error(told, {"node " + std::to_string(other), "ask", "largest",
                            "replied with " + std::to_string(engine.message_bytes_max() + 1) + " B;"});
        EXPECT_TRUE(!told && told.error().code() == ErrorCode::too_large);
        good(engine.send(other, ask, std::uint64_t{0}));
        EXPECT_TRUE(engine.wait_until([&] { return answers == 1; }, deadline()));
        settle(engine);
    });
}

KUMI_ENGINE_WORLDS(HandlerPromises);

} // namespace
} // namespace kumi::engine_test
