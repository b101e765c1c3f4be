// What engine/engine.hpp promises: each test is one promise, in every world. Of mutexes: engine/mutexes.cpp; of nodes
// that leave or die: engine/departures.cpp.

#include "engine/node.hpp"

#include "kumi/engine/call/invoke.hpp"

#include <atomic>
#include <optional>

namespace kumi::engine_test {
namespace {

using namespace std::chrono_literals;

class EnginePromises : public EngineTest {};

// ---- threads

TEST_P(EnginePromises, a_call_that_would_wait_is_refused_inside_a_handler) {
    run(2, [](Channel& channel) {
        std::atomic<int> handled{0};
        Flag never_set = 0;
        Segment<std::uint64_t> words;
        Handlers handlers;
        std::optional<Function<int()>> seven;
        seven = handlers.function("seven", [] { return 7; });
        const auto misbehave = handlers.add("misbehave", [&](Call& call) {
            Engine& engine = call.engine();
            auto memory = engine.memory();
            const Instant begin = now();
            expect_code(engine.sync(), ErrorCode::misuse, {"handler"});
            expect_code(engine.barrier(), ErrorCode::misuse, {"handler"});
            expect_code(engine.wait(BarrierToken{}), ErrorCode::misuse, {"handler"});
            expect_code(memory.wait(never_set), ErrorCode::misuse, {"handler"});
            expect_code(memory.segment<int>(10), ErrorCode::misuse, {"handler"});
            expect_code(memory.free(words), ErrorCode::misuse, {"handler"});
            expect_code(engine.invoke(call.source(), *seven).get(), ErrorCode::misuse, {"handler"});
            EXPECT_FALSE(engine.wait_until([] { return false; })) << "as if the deadline had come";
            EXPECT_EQ(engine.poll(), 0u);
            // Memory of this host is read at once; to read that of others would be to wait.
            if (const auto read = memory.read(words.at(call.source())); !read)
                expect_code(read, ErrorCode::misuse, {"handler"});
            if (const auto added = memory.fetch_add(words.at(call.source()), 0); !added)
                expect_code(added, ErrorCode::misuse, {"handler"});
            EXPECT_LT(now() - begin, 5s);
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        words = good(engine.memory().segment<std::uint64_t>(1));
        good(engine.barrier(deadline()));
        good(engine.send(1 - engine.node(), misbehave));
        good(engine.send(engine.node(), misbehave));
        EXPECT_TRUE(engine.wait_until([&] { return handled == 2; }, deadline()));
        settle(engine);
    });
}

TEST_P(EnginePromises, a_call_that_does_not_wait_is_allowed_inside_a_handler) {
    run(3, [](Channel& channel) {
        std::atomic<int> told{0};
        std::atomic<bool> has_read{false}, has_answer{false};
        Segment<std::uint64_t> words;
        Flag synced = 0, got = 0;
        std::uint64_t target = 0;
        std::optional<BarrierToken> token;
        Handlers handlers;
        const auto seven = handlers.function("seven", [] { return 7; });
        const auto tell = handlers.add("tell", [&](Call&) { ++told; });
        const auto act = handlers.add("act", [&](Call& call) {
            Engine& engine = call.engine();
            auto memory = engine.memory();
            const Node next = (engine.node() + 1) % engine.nodes();
            good(engine.send(next, tell));
            good(memory.write(words.at(next, 1), engine.node() + 10u));
            good(memory.set_flag(words.at(next, 2), 5));
            good(memory.start_get(words.at(next), {&target, 1}, &got));
            memory.async().read(words.at(next)).then([&](Result<std::uint64_t> value) {
                has_read = value && *value == 77;
            });
            engine.invoke(next, seven).then([&](Result<int> value) { has_answer = value && *value == 7; });
            good(engine.start_sync(synced));
            token = engine.arrive();
            (void)engine.test(*token);
            engine.flush();
        });
        Engine engine = open(channel, std::move(handlers));
        words = good(engine.memory().segment<std::uint64_t>(3));
        words[0] = 77;
        good(engine.barrier(deadline()));
        good(engine.send((engine.node() + 1) % 3, act));
        EXPECT_TRUE(engine.wait_until([&] { return told == 1 && has_read && has_answer; }, deadline()));
        good(engine.memory().wait(got, 1, deadline()));
        EXPECT_EQ(target, 77u);
        good(engine.memory().wait(synced, 1, deadline())); // what this node's handler has put is there
        good(engine.wait(*token, deadline()));
        good(engine.barrier(deadline()));
        const Node before = (engine.node() + 2) % 3;
        EXPECT_EQ(load_flag(words[1]), before + 10u);
        EXPECT_EQ(load_flag(words[2]), 5u);
        settle(engine);
    });
}

TEST_P(EnginePromises, every_call_may_come_from_any_thread) {
    run(2, [](Channel& channel) {
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        const auto seven = handlers.function("seven", [] { return 7; });
        Engine engine = open(channel, std::move(handlers));
        const auto words = good(engine.memory().segment<std::uint64_t>(4));
        const Node other = 1 - engine.node();
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < 4; ++i)
            threads.emplace_back([&, i] {
                try {
                    for (std::uint64_t round = 1; round <= 20; ++round) {
                        good(engine.memory().write(words.at(other, i), round));
                        good(engine.send(other, take));
                        good(engine.sync(deadline()));
                        EXPECT_EQ(good(engine.memory().read(words.at(other, i))), round);
                        EXPECT_EQ(good(engine.invoke(other, seven).get(deadline())), 7);
                    }
                } catch (const Stop&) {
                }
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_TRUE(engine.wait_until([&] { return handled == 80; }, deadline())) << handled;
        settle(engine);
    });
}

TEST_P(EnginePromises, many_threads_of_a_node_send_at_once_and_handlers_run_one_at_a_time) {
    run(2, [](Channel& channel) {
        const long count = 200 * scale;
        constexpr long threads = 4;
        long handled = 0; // not atomic
        std::atomic<int> inside{0};
        std::array<long, threads> next{};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, long thread, long number) {
            EXPECT_EQ(++inside, 1);
            EXPECT_EQ(number, next.at(static_cast<std::size_t>(thread))++);
            ++handled;
            --inside;
        });
        Engine engine = open(channel, std::move(handlers));
        std::vector<std::thread> others;
        for (long thread = 0; thread < threads; ++thread)
            others.emplace_back([&, thread] {
                try {
                    for (long i = 0; i < count; ++i) good(engine.send(1 - engine.node(), take, thread, i));
                    good(engine.sync());
                } catch (const Stop&) {
                }
            });
        for (std::thread& other : others) other.join();
        EXPECT_TRUE(engine.wait_until([&] { return handled == threads * count; }, deadline())) << handled;
        settle(engine);
    });
}

TEST_P(EnginePromises, a_node_that_computes_still_answers) {
    run(2, [](Channel& channel) {
        std::atomic<bool> is_over{false};
        int answers = 0;
        Handlers handlers;
        const auto answer = handlers.add("answer", [&](Call&) { ++answers; });
        const auto ask = handlers.add("ask", [&](Call& call) { call.reply(answer); });
        const auto over = handlers.add("over", [&](Call&) { is_over = true; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier());
        if (engine.node() == 0) {
            for (int i = 0; i < 20; ++i) {
                good(engine.send(1, ask));
                EXPECT_TRUE(engine.wait_until([&] { return answers == i + 1; }, deadline()));
            }
            good(engine.send(1, over));
        } else { // calls nothing of the engine's
            for (const Instant end = deadline(); !is_over && now() < end;) std::this_thread::sleep_for(1ms);
            EXPECT_TRUE(is_over);
        }
        settle(engine);
    });
}

TEST_P(EnginePromises, sending_runs_no_handlers_in_the_thread_that_sends) {
    run(2, [](Channel& channel) {
        const long count = 300 * scale;
        std::atomic<std::thread::id> sender{};
        std::atomic<long> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, Bytes) {
            EXPECT_NE(sender.load(), std::this_thread::get_id());
            ++handled;
        });
        Engine engine = open(channel, std::move(handlers));
        engine.dispatcher().messages().set_plain_handler([&](pm::Message&) {
            EXPECT_NE(sender.load(), std::this_thread::get_id());
            ++handled;
        });
        good(engine.barrier(deadline()));
        const std::vector<std::byte> payload(3000);
        const Bytes bytes = payload;
        sender = std::this_thread::get_id();
        for (long i = 0; i < count; ++i) { // both nodes at once: neither has room before the other has handled
            good(engine.send(1 - engine.node(), take, bytes));
            good(engine.dispatcher().messages().send_plain(1 - engine.node(), {&bytes, 1}));
        }
        sender = std::thread::id{};
        EXPECT_TRUE(engine.wait_until([&] { return handled == 2 * count; }, deadline())) << handled;
        settle(engine);
    });
}

TEST_P(EnginePromises, requests_of_a_pair_are_handled_once_and_in_order) {
    run(4, [](Channel& channel) {
        const std::uint64_t count = 300 * scale;
        std::vector<std::uint64_t> next(channel.nodes());
        Handlers handlers;
        const auto take = handlers.add(
            "take", [&](Call& call, std::uint64_t number, Bytes) { EXPECT_EQ(number, next[call.source()]++); });
        Engine engine = open(channel, std::move(handlers));
        std::mt19937_64 random(seed() + engine.node());
        const std::vector<std::byte> payload(100'000);
        for (std::uint64_t i = 0; i < count; ++i)
            for (Node to = 0; to < engine.nodes(); ++to)
                good(
                    engine.send(to, take, i,
                                Bytes(payload).first(random() % 40 == 0 ? random() % payload.size() : random() % 100)));
        settle(engine);
        EXPECT_EQ(next, std::vector<std::uint64_t>(engine.nodes(), count));
        good(engine.barrier());
    });
}

TEST_P(EnginePromises, a_handler_may_send_further_requests) {
    run(4, [](Channel& channel) {
        const std::uint64_t hops = 200 * scale;
        std::uint64_t ended = 0, visits = 0;
        std::optional<Handler<std::uint64_t, Node>> hop;
        Handlers handlers;
        const auto end = handlers.add("end", [&](Call&) { ++ended; });
        hop = handlers.add("hop", [&](Call& call, std::uint64_t left, Node origin) {
            ++visits;
            Engine& engine = call.engine();
            const Node next = (engine.node() + 1) % engine.nodes();
            if (left == 0) good(engine.send(origin, end));
            else good(engine.send(next, *hop, left - 1, origin));
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier());
        constexpr std::uint64_t tokens = 20;
        for (std::uint64_t i = 0; i < tokens; ++i)
            good(engine.send(static_cast<Node>(i % 4), *hop, hops - 1, engine.node()));
        EXPECT_TRUE(engine.wait_until([&] { return ended == tokens; }, deadline()));
        good(engine.barrier());
        EXPECT_EQ(visits, tokens * hops); // all nodes are visited alike
        good(engine.barrier());
    });
}

// ---- the end

TEST_P(EnginePromises, what_waits_to_be_sent_goes_before_the_engine_ends) {
    run(2, [](Channel& channel) {
        constexpr int count = 300;
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&, int number, Bytes) { EXPECT_EQ(number, handled++); });
        const auto begin = handlers.add("begin", [&](Call& call) {
            const std::vector<std::byte> payload(1000);
            for (int i = 0; i < count; ++i) good(call.engine().send(1, take, i, Bytes(payload))); // many find no room
        });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            good(engine.send(0, begin));
            good(engine.sync(deadline()));
            return;
        }
        EXPECT_TRUE(engine.wait_until([&] { return handled == count; }, deadline())) << handled;
    });
}

// ---- sync

TEST_P(EnginePromises, a_sync_that_timed_out_may_be_called_again) {
    run(2, [](Channel& channel) {
        std::atomic<bool> has_ended{false};
        Handlers handlers;
        const auto slow = handlers.add("slow", [&](Call&) {
            std::this_thread::sleep_for(60ms);
            has_ended = true;
        });
        const auto ask = handlers.function("ask", [&] { return has_ended.load(); });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            good(engine.send(1, slow));
            const Instant begin = now();
            for (const Instant end : {begin - 1s, begin + 5ms, begin + 10ms}) {
                const auto late = engine.sync(end);
                if (now() < begin + 60ms) expect_code(late, ErrorCode::timed_out, {"sync", "node 1"});
            }
            good(engine.sync(deadline()));
            EXPECT_TRUE(good(engine.invoke(1, ask).get(deadline())));
        }
        settle(engine);
    });
}

TEST_P(EnginePromises, sync_waits_for_requests_of_other_threads_too) {
    run(2, [](Channel& channel) {
        Segment<std::uint64_t> words;
        Handlers handlers;
        const auto slow = handlers.add("slow", [&](Call&) {
            std::this_thread::sleep_for(20ms);
            words[0] = 1;
        });
        Engine engine = open(channel, std::move(handlers));
        words = good(engine.memory().segment<std::uint64_t>(1));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            std::thread([&] { EXPECT_TRUE(engine.send(1, slow)); }).join();
            good(engine.sync(deadline()));
            EXPECT_EQ(good(engine.memory().read(words.at(1))), 1u);
        }
        settle(engine);
    });
}

TEST_P(EnginePromises, after_sync_requests_have_been_handled) {
    run(2, [](Channel& channel) {
        std::atomic<int> handled{0};
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        Engine engine = open(channel, std::move(handlers));
        const auto seen = good(engine.memory().segment<int>(1));
        for (int i = 1; i <= 50; ++i) {
            good(engine.barrier());
            if (engine.node() == 0) {
                good(engine.send(1, take));
                good(engine.sync());
                good(engine.memory().write(seen.at(1), i));
                good(engine.sync());
            }
            good(engine.barrier());
            EXPECT_TRUE(engine.node() == 0 || handled == seen[0]);
        }
        good(engine.barrier());
    });
}

TEST_P(EnginePromises, ends_while_handlers_pass_tokens_on) {
    run(3, [](Channel& channel) {
        Engine* self = nullptr;
        std::atomic<bool> is_over{false};
        std::atomic<std::uint64_t> passed{0};
        Handlers handlers;
        std::optional<Handler<>> pass;
        pass = handlers.add("pass", [&](Call&) {
            ++passed;
            if (!is_over) (void)self->send((self->node() + 1) % self->nodes(), *pass);
        });
        Engine engine = open(channel, std::move(handlers));
        self = &engine;
        good(engine.barrier(deadline()));
        for (int i = 0; i < 10; ++i) good(engine.send((engine.node() + 1) % 3, *pass));
        for (int i = 0; i < 20; ++i) good(engine.sync(deadline()));
        Flag flag = 0;
        good(engine.start_sync(flag));
        good(engine.memory().wait(flag, 1, deadline()));
        good(engine.barrier(deadline()));
        is_over = true;
        EXPECT_GT(passed.load(), 0u);
        settle(engine);
        settle(engine);
    });
}

TEST_P(EnginePromises, waits_for_large_puts_that_were_begun_before) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const auto memory = good(engine.memory().segment<std::byte>(3'000'000));
        const auto content = pattern(memory.size(), 1 + engine.node());
        const Node other = 1 - engine.node();
        for (int i = 0; i < 3; ++i) {
            good(engine.memory().start_put(memory.at(other), content));
            good(engine.sync(deadline()));
            std::byte last{};
            good(engine.memory().get(memory.at(other, memory.size() - 1), {&last, 1}));
            EXPECT_EQ(last, content.back());
        }
        good(engine.barrier(deadline()));
        EXPECT_TRUE(is_pattern(memory.local(), 1 + other));
        good(engine.barrier(deadline()));
    });
}

TEST_P(EnginePromises, returns_the_errors_of_the_thread_that_calls_it) {
    run(2, [](Channel& channel) {
        Handlers handlers;
        const auto refuse = handlers.add("refuse", [](Call&, int number) {
            throw std::runtime_error("number " + std::to_string(number));
        });
        Engine engine = open(channel, std::move(handlers));
        const Node other = 1 - engine.node();
        good(engine.barrier(deadline()));
        std::atomic<int> step{0};
        std::thread second([&] {
            EXPECT_TRUE(engine.send(other, refuse, 2));
            step = 1;
            EXPECT_TRUE(engine.wait_until([&] { return step == 2; }, deadline()));
            const auto told = engine.sync(deadline());
            expect_error(told, {"number 2"});
            EXPECT_EQ(told.error().code(), ErrorCode::refused);
            EXPECT_TRUE(engine.sync(deadline())) << "told once";
        });
        EXPECT_TRUE(engine.wait_until([&] { return step == 1; }, deadline()));
        good(engine.sync(deadline())); // it has sent nothing that failed
        Flag flag = 0;
        EXPECT_EQ(engine.memory().wait(flag, 1, now() + 5ms).error().code(), ErrorCode::timed_out)
            << "a thread that waits for a flag is told of its own errors only";
        good(engine.send(other, refuse, 1));
        expect_error(engine.sync(deadline()), {"number 1"});
        step = 2;
        second.join();
        good(engine.barrier(deadline()));
    });
}

TEST_P(EnginePromises, start_sync_sets_its_flag_when_all_that_was_begun_is_done) {
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

// ---- barriers

TEST_P(EnginePromises, a_barrier_that_a_handler_was_refused_has_not_been_arrived_at) {
    run(2, [](Channel& channel) {
        std::atomic<bool> was_refused{false}, may_go{false};
        Handlers handlers;
        const auto misbehave = handlers.add("misbehave", [&](Call& call) {
            expect_code(call.engine().barrier(), ErrorCode::misuse, {"handler"});
            was_refused = true;
        });
        const auto go = handlers.add("go", [&](Call&) { may_go = true; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            good(engine.send(1, misbehave));
            good(engine.sync(deadline()));
            expect_code(engine.barrier(now() + 30ms), ErrorCode::timed_out);
            good(engine.send(1, go));
        } else {
            EXPECT_TRUE(engine.wait_until([&] { return was_refused && may_go; }, deadline()));
        }
        settle(engine);
    });
}

TEST_P(EnginePromises, a_barrier_that_timed_out_is_gone_on_with_by_any_thread) {
    run(2, [](Channel& channel) {
        Engine engine = open(channel);
        const auto words = good(engine.memory().segment<std::uint64_t>(1));
        for (std::uint64_t round = 1; round <= 3; ++round) {
            if (engine.node() == 0) {
                expect_code(engine.barrier(now() - 1s), ErrorCode::timed_out);
                expect_code(engine.barrier(now() + 2ms), ErrorCode::timed_out);
                std::thread([&] { EXPECT_TRUE(engine.barrier(deadline())); }).join();
                EXPECT_EQ(good(engine.memory().read(words.at(1))), round) << "node 1 had not come";
            } else {
                std::this_thread::sleep_for(20ms);
                words[0] = round;
                good(engine.barrier(deadline()));
            }
            good(engine.barrier(deadline()));
        }
        settle(engine);
    });
}

TEST_P(EnginePromises, an_arrive_after_a_barrier_that_timed_out_is_the_next_one) {
    run(2, [](Channel& channel) {
        std::atomic<int> go{0};
        Handlers handlers;
        const auto more = handlers.add("more", [&](Call&) { ++go; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        if (engine.node() == 0) {
            expect_code(engine.barrier(now() + 1ms), ErrorCode::timed_out); // it has arrived at the first
            const BarrierToken second = engine.arrive();
            EXPECT_FALSE(engine.test(second));
            good(engine.send(1, more)); // node 1 comes to the first
            expect_code(engine.wait(second, now() + 20ms), ErrorCode::timed_out);
            good(engine.send(1, more)); // and to the second
            good(engine.wait(second, deadline()));
            EXPECT_TRUE(engine.test(second));
            expect_code(engine.barrier(now() + 20ms), ErrorCode::timed_out); // the third
            good(engine.send(1, more));
            good(engine.barrier(deadline()));
        } else {
            for (int i = 1; i <= 3; ++i) {
                EXPECT_TRUE(engine.wait_until([&] { return go == i; }, deadline()));
                good(engine.barrier(deadline()));
            }
        }
        settle(engine);
    });
}

TEST_P(EnginePromises, nobody_leaves_before_all_have_come) {
    for (Node nodes = 1; nodes <= 7; ++nodes) {
        run(nodes, [](Channel& channel) {
            Engine engine = open(channel);
            const auto come = good(engine.memory().segment<std::uint64_t>(1));
            std::mt19937_64 random(seed() + engine.node());
            for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(10 * scale); ++round) {
                if (random() % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
                good(engine.memory().fetch_add(come.at(0), 1));
                good(engine.barrier(deadline()));
                EXPECT_GE(good(engine.memory().fetch_add(come.at(0), 0)), round * engine.nodes());
            }
            good(engine.barrier());
        });
    }
}

TEST_P(EnginePromises, many_may_be_under_way_and_they_complete_in_order) {
    run(5, [](Channel& channel) {
        Engine engine = open(channel);
        constexpr std::uint64_t count = 200;
        const auto come = good(engine.memory().segment<std::uint64_t>(count));
        std::mt19937_64 random(seed() + engine.node());
        std::deque<BarrierToken> under_way;
        std::uint64_t arrived = 0, done = 0;
        while (done < count) {
            if (arrived < count && arrived - done < 60 && random() % 3 != 0) {
                good(engine.memory().fetch_add(come.at(0, arrived++), 1));
                under_way.push_back(engine.arrive());
                continue;
            }
            if (under_way.empty()) continue;
            const BarrierToken& any = under_way[random() % under_way.size()];
            EXPECT_TRUE(!engine.test(any) || engine.test(under_way.front())) << "they complete in order";
            if (random() % 2 == 0) good(engine.wait(under_way.front(), deadline()));
            for (; !under_way.empty() && engine.test(under_way.front()); under_way.pop_front(), ++done)
                EXPECT_EQ(good(engine.memory().read(come.at(0, done))), 5u) << "barrier " << done;
        }
        good(engine.barrier());
    });
}

TEST_P(EnginePromises, some_nodes_meet_without_the_others) {
    run(6, [](Channel& channel) {
        Engine engine = open(channel);
        const std::vector<std::vector<Node>> sets{{0, 2, 4}, {5, 3, 1}, {4, 5}, {0, 1, 2, 3, 4, 5}, {2}, {3, 0, 5, 1}};
        const auto come = good(engine.memory().segment<std::uint64_t>(sets.size()));
        for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(5 * scale); ++round)
            for (std::size_t i = 0; i < sets.size(); ++i) {
                std::vector<Node> members = sets[i];
                if (std::ranges::find(members, engine.node()) == members.end()) continue;
                // in any order
                std::rotate(members.begin(),
                            members.begin() + static_cast<std::ptrdiff_t>(engine.node() % members.size()),
                            members.end());
                good(engine.memory().fetch_add(come.at(0, i), 1));
                good(engine.wait(good(engine.arrive(members)), deadline()));
                EXPECT_GE(good(engine.memory().fetch_add(come.at(0, i), 0)), round * members.size());
            }
        good(engine.barrier());
    });
}

TEST_P(EnginePromises, sets_that_make_no_sense_are_refused) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const Node next = (engine.node() + 1) % 3;
        expect_error(engine.arrive(std::vector<Node>{}), {});
        expect_error(engine.arrive(std::vector<Node>{next}), {});
        expect_error(engine.arrive(std::vector<Node>{engine.node(), 3}), {"node 3"});
        expect_error(engine.arrive(std::vector<Node>{engine.node(), next, next}), {});
        good(engine.barrier());
    });
}

TEST_P(EnginePromises, a_wait_ends_at_its_deadline_and_says_who_has_not_come) {
    run(3, [](Channel& channel) {
        Engine engine = open(channel);
        const auto flags = good(engine.memory().segment<Flag>(1));
        if (engine.node() == 2) good(engine.memory().wait(flags[0], 1, deadline()));
        const BarrierToken token = engine.arrive();
        if (engine.node() == 0) {
            expect_error(engine.wait(token, now() + 30ms), {"barrier", "node"});
            good(engine.memory().set_flag(flags.at(2)));
        }
        good(engine.wait(token, deadline())); // it goes on all the same
        good(engine.barrier());
    });
}

// ---- C++

TEST_P(EnginePromises, what_a_function_answers_or_throws_comes_to_the_future) {
    run(3, [](Channel& channel) {
        Handlers handlers;
        Node self = channel.self();
        const auto where = handlers.function("where", [self](int more) { return static_cast<int>(self) * 10 + more; });
        const auto fail = handlers.function("fail", [](int) -> int { throw std::runtime_error("not today"); });
        const auto fail_oddly = handlers.function("fail oddly", [](int) -> int { throw 5; });
        Engine engine = open(channel, std::move(handlers));
        auto all = engine.invoke_all(where, 3);
        EXPECT_EQ(all.size(), 3u);
        for (Node node = 0; node < 3; ++node)
            EXPECT_EQ(good(all[node].get(deadline())), static_cast<int>(node) * 10 + 3);
        for (Node node = 0; node < 3; ++node) {
            const std::string name = "node " + std::to_string(node);
            expect_code(engine.invoke(node, fail, 1).get(deadline()), ErrorCode::refused, {name, "fail", "not today"});
            expect_code(engine.invoke(node, fail_oddly, 1).get(deadline()), ErrorCode::refused, {name, "fail oddly"});
        }
        for (const Node nobody : {Node{3}, ~Node{0}})
            expect_code(engine.invoke(nobody, where, 1).get(deadline()), ErrorCode::not_found);
        good(engine.sync(deadline())); // it has nothing to tell: the futures have told it
        settle(engine);
    });
}

// ---- progress

TEST_P(EnginePromises, poll_handles_what_has_arrived_and_answers_how_much) {
    run(2, [](Channel& channel) {
        int handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        Engine engine = open(channel, std::move(handlers), {.in_background = false});
        good(engine.send(1 - engine.node(), take));
        engine.flush();
        std::size_t count = 0;
        for (const Instant end = deadline(); handled == 0 && now() < end;) count += engine.poll();
        EXPECT_EQ(handled, 1);
        EXPECT_GE(count, 1u);
        settle(engine);
    });
}

TEST_P(EnginePromises, wait_until_ends_when_it_is_done_or_at_its_deadline) {
    run(2, [](Channel& channel) {
        int handled = 0;
        Handlers handlers;
        const auto take = handlers.add("take", [&](Call&) { ++handled; });
        Engine engine = open(channel, std::move(handlers));
        good(engine.barrier(deadline()));
        const Instant begin = now();
        EXPECT_FALSE(engine.wait_until([] { return false; }, begin + 20ms));
        EXPECT_GE(now() - begin, 20ms);
        EXPECT_LT(now() - begin, sanitized ? 5s : 1s);
        EXPECT_FALSE(engine.wait_until([] { return false; }, begin)) << "the deadline has passed";
        EXPECT_TRUE(engine.wait_until([] { return true; }, begin)) << "it is done all the same";
        good(engine.send(1 - engine.node(), take));
        EXPECT_TRUE(engine.wait_until([&] { return handled == 1; }, deadline()));
        settle(engine);
    });
}

KUMI_ENGINE_WORLDS(EnginePromises);

} // namespace
} // namespace kumi::engine_test
