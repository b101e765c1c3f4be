// What functions.hpp, and engine/handlers.hpp of functions, promise: each test is one promise, in every world.

#include "engine/node.hpp"

#include "kumi/functions.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class FunctionPromises : public EngineTest {};

struct Plain {
    int number = 0;
    double real = 0;
};

struct Written {
    std::string name;
    std::vector<int> numbers;
    template <class Archive>
    void serialize(Archive& archive) {
        archive(name, numbers);
    }
};

/// Throws when it is written, what is no std::exception.
struct Unwritable {
    std::string text;
    template <class Archive>
    void serialize(Archive&) {
        if (text == "error") throw Error(ErrorCode::too_large, "my own");
        throw 5;
    }
};

/// Throws when it is read, as its number says.
struct Unreadable {
    int how = 0;
    template <class Archive>
    void save(Archive& archive) const {
        archive(how);
    }
    template <class Archive>
    void load(Archive& archive) {
        archive(how);
        if (how == 1) throw 5;
        if (how == 2) throw Error(ErrorCode::too_large, "my own");
        if (how == 3) throw std::runtime_error("on purpose");
    }
};

/// Cannot be made, so no answer can be read.
struct Unmakeable {
    Unmakeable() { throw 5; }
    explicit Unmakeable(int) {}
    template <class Archive>
    void serialize(Archive&) {}
};

TEST_P(FunctionPromises, values_of_every_kind_are_taken_and_answered) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        using All = std::tuple<std::vector<std::string>, std::map<std::string, int>, std::set<int>, std::list<double>,
                               std::deque<char>, std::optional<int>, std::variant<int, std::string>,
                               std::pair<bool, std::array<short, 2>>>;
        const auto echo = handlers.function("echo", [](All all) { return all; });
        const auto plain = handlers.function("plain", [](Plain plain) { return Plain{plain.number + 1, plain.real}; });
        const auto written = handlers.function("written", [](const Written& one) {
            return Written{one.name + "!", {one.numbers.rbegin(), one.numbers.rend()}};
        });
        const auto nothing = handlers.function("nothing", [] {});
        Engine engine = open(channel, std::move(handlers));
        for (const Node to : {Node{0}, Node{1}}) {
            const All some{{"a", ""}, {{"b", 2}}, {3, 4}, {0.5}, {'\xE9', 'f'}, std::nullopt, "text", {true, {-1, 2}}};
            EXPECT_EQ(good(engine.invoke(to, echo, some).get(deadline())), some);
            EXPECT_EQ(good(engine.invoke(to, echo, All{}).get(deadline())), All{});
            EXPECT_EQ(good(engine.invoke(to, plain, Plain{4, 0.5}).get(deadline())).number, 5);
            const auto got = good(engine.invoke(to, written, Written{"name", {1, 2}}).get(deadline()));
            EXPECT_EQ(got.name, "name!");
            EXPECT_EQ(got.numbers, (std::vector{2, 1}));
            good(engine.invoke(to, nothing).get(deadline()));
        }
        settle(engine);
    });
}

TEST_P(FunctionPromises, a_result_or_a_future_may_be_returned_and_an_error_keeps_its_code) {
    run(2, [](Channel& channel) {
        Promise<std::string> later;
        Handlers handlers;
        const auto result = handlers.function("result", [](int value) -> Result<int> {
            if (value < 0) return Error(ErrorCode::too_large, "below zero");
            return value + 1;
        });
        const auto wait = handlers.function("wait", [&] { return later.future(); });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        EXPECT_EQ(good(engine.invoke(other, result, 4).get(deadline())), 5);
        expect_code(engine.invoke(other, result, -4).get(deadline()), ErrorCode::too_large, {"below zero"});
        auto answer = engine.invoke(other, wait);
        expect_code(answer.get(now() + 5ms), ErrorCode::timed_out);
        good(engine.barrier(deadline()));
        later.complete(std::string("done"));
        EXPECT_EQ(good(answer.get(deadline())), "done");
        expect_code(engine.invoke(other, wait).get(deadline()), ErrorCode::misuse); // that future was taken
        settle(engine);
    });
}

TEST_P(FunctionPromises, an_answer_that_cannot_be_written_is_an_error_whatever_it_throws) {
    run(2, [](Channel& channel) {
        Promise<Unwritable> later;
        Handlers handlers;
        const auto now_ = handlers.function("now", [] { return Unwritable(); });
        const auto wait = handlers.function("wait", [&] { return later.future(); });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        expect_code(engine.invoke(other, now_).get(deadline()), ErrorCode::refused, {"now"});
        auto answer = engine.invoke(other, wait);
        good(engine.barrier(deadline()));
        later.complete(Unwritable());
        expect_code(answer.get(now() + 5s), ErrorCode::refused, {"its answer cannot be sent"});
        settle(engine);
    });
}

TEST_P(FunctionPromises, an_answer_that_cannot_be_read_is_an_error_that_names_function_and_node_whatever_it_throws) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto give = handlers.function("give", [](int how) { return Unreadable{how}; });
        const auto take = handlers.function("take", [](const Unreadable& one) { return one.how; });
        const auto make = handlers.function("make", [] { return Unmakeable(1); });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        const std::string from = "function give on node " + std::to_string(other);
        const auto given = [&](int how) { return engine.invoke(other, give, how).get(deadline()); };
        EXPECT_EQ(good(given(0)).how, 0);
        expect_code(given(1), ErrorCode::refused, {from, "what was thrown is no std::exception"});
        expect_code(given(2), ErrorCode::refused, {from, "my own"});
        expect_code(given(3), ErrorCode::refused, {from, "on purpose"});
        expect_code(engine.invoke(other, make).get(deadline()), ErrorCode::refused, {"function make on node"});
        // Arguments are read at the other node.
        const auto taken = [&](int how) { return engine.invoke(other, take, Unreadable{how}).get(deadline()); };
        EXPECT_EQ(good(taken(0)), 0);
        expect_code(taken(1), ErrorCode::refused, {"function take", "what was thrown is no std::exception"});
        expect_code(taken(2), ErrorCode::refused, {"function take", "my own"});
        settle(engine);
    });
}

TEST_P(FunctionPromises, arguments_that_cannot_be_written_are_an_error_of_the_future_whatever_they_throw) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto take = handlers.function("take", [](const Unwritable&) {});
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        expect_code(engine.invoke(other, take, Unwritable{"a"}).get(deadline()), ErrorCode::misuse,
                    {"function take on node " + std::to_string(other) + ": its arguments cannot be sent: what was"});
        expect_code(engine.invoke(other, take, Unwritable{"error"}).get(deadline()), ErrorCode::too_large,
                    {"function take on node", "arguments cannot be sent", "my own"});
        settle(engine);
    });
}

TEST_P(FunctionPromises, an_error_that_a_function_throws_keeps_its_code_and_text) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto fail = handlers.function("fail", [] { throw Error(ErrorCode::too_large, "my own"); });
        Engine engine = open(channel, std::move(handlers));
        expect_code(engine.invoke(1 - engine.node(), fail).get(deadline()), ErrorCode::too_large,
                    {"function fail threw: my own"});
        settle(engine);
    });
}

TEST_P(FunctionPromises, a_promise_that_a_function_never_keeps_is_an_error_at_the_caller) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto drop = handlers.function("drop", [] {
            Promise<int> promise;
            return promise.future();
        });
        Engine engine = open(channel, std::move(handlers));
        expect_code(engine.invoke(1 - engine.node(), drop).get(deadline()), ErrorCode::cancelled);
        settle(engine);
    });
}

TEST_P(FunctionPromises, functions_run_at_the_same_time) {
    run(2, [](Channel& channel) {
        std::atomic<int> inside{0};
        Handlers handlers;
        const auto meet = handlers.function("meet", [&] {
            ++inside;
            for (const Instant end = now() + 10s; inside < 4 && now() < end;) std::this_thread::sleep_for(1ms);
            return inside.load();
        });
        Engine engine = open(channel, std::move(handlers));
        std::vector<Future<int>> all;
        for (int i = 0; i < 4; ++i) all.push_back(engine.invoke(1 - engine.node(), meet)); // as many as workers
        for (auto& one : all) EXPECT_EQ(good(one.get(deadline())), 4);
        settle(engine);
    });
}

TEST_P(FunctionPromises, one_that_waits_in_a_call_of_the_job_makes_room_for_another) {
    run(2, [](Channel& channel) {
        std::atomic<bool> may_end{false};
        std::atomic<int> inside{0};
        Engine* self = nullptr;
        Handlers handlers;
        const auto wait = handlers.function("wait", [&] {
            ++inside;
            return self->wait_until([&] { return may_end.load(); }, deadline());
        });
        const auto open_door = handlers.function("open", [&] { may_end = true; });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        good(engine.barrier(deadline()));
        const Node other = 1 - engine.node();
        std::vector<Future<bool>> all;
        for (int i = 0; i < 12; ++i) all.push_back(engine.invoke(other, wait)); // more than there are workers
        EXPECT_TRUE(engine.wait_until([&] { return inside == 12; }, deadline())) << inside;
        good(engine.invoke(other, open_door).get(deadline()));
        for (auto& one : all) EXPECT_TRUE(good(one.get(deadline())));
        settle(engine);
    });
}

TEST_P(FunctionPromises, without_a_background_threads_that_wait_run_functions_one_at_a_time) {
    run(2, [](Channel& channel) {
        std::atomic<int> inside{0};
        std::atomic<bool> was_elsewhere{false};
        const auto me = std::this_thread::get_id();
        Handlers handlers;
        const auto count = handlers.function("count", [&](int value) {
            EXPECT_EQ(++inside, 1);
            if (std::this_thread::get_id() != me) was_elsewhere = true;
            --inside;
            return value;
        });
        Engine engine = open(channel, std::move(handlers), {.in_background = false});
        std::vector<Future<int>> all;
        for (int i = 0; i < 20; ++i) all.push_back(engine.invoke(1 - engine.node(), count, i));
        for (int i = 0; i < 20; ++i) EXPECT_EQ(good(all[static_cast<std::size_t>(i)].get(deadline())), i);
        settle(engine);
        EXPECT_FALSE(was_elsewhere);
    });
}

TEST_P(FunctionPromises, may_be_nested_deeply_and_wait_for_those_that_come_later) {
    run(2, [](Channel& channel) {
        Engine* self = nullptr;
        std::atomic<int> opened{0};
        Handlers handlers;
        std::optional<Function<int(int)>> count;
        count = handlers.function("count", [&](int left) -> int {
            return left == 0 ? 0 : 1 + must(self->invoke(1 - self->node(), *count, left - 1).get());
        });
        // Each waits until all that came after it have run.
        const auto open_in_turn = handlers.function("open", [&](int number) {
            if (!self->wait_until([&] { return opened == number; }, deadline())) return false;
            ++opened;
            return true;
        });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        good(engine.barrier(deadline()));
        EXPECT_EQ(good(engine.invoke(1 - engine.node(), *count, 100).get(deadline())), 100);
        std::vector<Future<bool>> answers;
        for (int number = 39; number >= 0; --number)
            answers.push_back(engine.invoke(1 - engine.node(), open_in_turn, number));
        for (auto& answer : answers) EXPECT_TRUE(good(answer.get(deadline())));
        good(engine.barrier(deadline()));
    });
}

TEST_P(FunctionPromises, take_and_answer_much_more_than_a_message_holds) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto reversed = handlers.function("reversed", [](std::vector<std::uint32_t> values) {
            std::ranges::reverse(values);
            return values;
        });
        const auto size_of = handlers.function("size", [](const std::string& text) { return text.size(); });
        const auto text_of = handlers.function("text", [](std::size_t size) { return std::string(size, 'x'); });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        for (const std::size_t bytes : {engine.message_bytes_max() / 2 - 8, engine.message_bytes_max() / 2 - 7,
                                        engine.message_bytes_max(), std::size_t{1'000'000}}) {
            EXPECT_EQ(good(engine.invoke(other, size_of, std::string(bytes, 'y')).get(deadline())), bytes);
            EXPECT_EQ(good(engine.invoke(other, text_of, bytes).get(deadline())), std::string(bytes, 'x'));
        }
        std::vector<std::uint32_t> values(300'000);
        std::vector<Future<std::vector<std::uint32_t>>> answers;
        for (std::uint32_t i = 0; i < 5; ++i) { // parts of several are under way
            for (std::size_t at = 0; at < values.size(); ++at) values[at] = static_cast<std::uint32_t>(at) * (i + 1);
            answers.push_back(engine.invoke(other, reversed, values));
        }
        for (std::uint32_t i = 0; i < 5; ++i) {
            const auto answer = good(answers[i].get(deadline()));
            ASSERT_EQ(answer.size(), values.size());
            for (std::size_t at = 0; at < values.size(); at += 999)
                EXPECT_EQ(answer[values.size() - 1 - at], static_cast<std::uint32_t>(at) * (i + 1));
        }
        good(engine.barrier(deadline()));
    });
}

TEST_P(FunctionPromises, may_sync_though_the_call_that_they_answer_is_under_way) {
    run(2, [](Channel& channel) {
        Engine* self = nullptr;
        Segment<std::uint64_t> words;
        Handlers handlers;
        const auto store = handlers.function("store", [&](std::uint64_t value) {
            must(self->memory().put(words.at(1 - self->node()), {&value, 1}));
            return self->sync(deadline()).has_value();
        });
        const auto back = handlers.function("back", [&](std::uint64_t value) { // called by a node that waits for this
            return must(self->invoke(1 - self->node(), store, value).get(deadline()));
        });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        words = good(engine.memory().segment<std::uint64_t>(1));
        good(engine.barrier(deadline()));
        EXPECT_TRUE(good(engine.invoke(engine.node(), store, std::uint64_t{1}).get(deadline()))) << "on this node";
        EXPECT_TRUE(good(engine.invoke(1 - engine.node(), back, std::uint64_t{2}).get(deadline())));
        good(engine.barrier(deadline()));
    });
}

/// Whether functions have threads of their own: not in a world without a background.
TEST_P(FunctionPromises, one_that_computes_for_long_stops_neither_messages_nor_deadlines) {
    run(2, [](Channel& channel) {
        std::atomic<bool> has_begun{false}, may_end{false};
        int pongs = 0;
        Handlers handlers;
        const auto pong = handlers.add("pong", [&](Call&) { ++pongs; });
        const auto ping = handlers.add("ping", [&](Call& call) { call.reply(pong); });
        const auto compute = handlers.function("compute", [&] {
            has_begun = true;
            for (const Instant end = deadline(); !may_end && now() < end;) std::this_thread::sleep_for(1ms);
            return 5;
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        auto answer = engine.invoke(1 - engine.node(), compute);
        while (!has_begun) engine.poll();
        const Instant start = now();
        EXPECT_FALSE(engine.wait_until([] { return false; }, start + 20ms));
        EXPECT_LT(now() - start, 5s) << "the deadline holds while a function runs here";
        good(engine.send(1 - engine.node(), ping));
        EXPECT_TRUE(engine.wait_until([&] { return pongs == 1; }, deadline()));
        EXPECT_FALSE(answer.is_ready()) << "the other node answers messages while its function computes";
        good(engine.barrier(deadline())); // also while functions run on all nodes
        may_end = true;
        EXPECT_EQ(good(answer.get(deadline())), 5);
        good(engine.barrier(deadline()));
    });
}

KUMI_ENGINE_WORLDS(FunctionPromises);

} // namespace
} // namespace kumi::engine_test
