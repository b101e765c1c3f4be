// Whole jobs in one thread, by seed: random work on a network that delays and refuses, is parted and heals, and loses
// nodes. KUMI_SEED=N replays one of them, KUMI_SEEDS=N runs so many.

#include "engine/one_thread.hpp"
#include "engine/random_memory.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>

namespace kumi::engine_test {
namespace {

void for_each_seed(const std::function<void(std::uint64_t)>& run) { engine_test::for_each_seed(60, run); }

OneThread::Options options_of(std::uint64_t seed) { return engine_test::options_of(seed, 4); }

std::uint64_t steps_of(std::uint64_t seed) {
    OneThread world(options_of(seed));
    return world.run([&](Channel& channel) {
        // by the world's clock: ours depends on how busy the machine is
        Engine engine = open(channel, {}, world.setup());
        std::mt19937_64 random(seed + channel.self());
        RandomMemory memory(engine, random);
        for (int step = 0; step < 20; ++step) memory.step();
        memory.finish();
    });
}

TEST(OneThread, a_run_is_a_function_of_its_seed) {
#if defined(KUMI_THREAD_SANITIZER)
    KUMI_SKIP(skips::one_thread);
#endif
    EXPECT_EQ(steps_of(1), steps_of(1));
    EXPECT_NE(steps_of(1), steps_of(2));
}

TEST(OneThread, remote_memory_does_what_a_model_says_though_the_network_is_parted) {
    for_each_seed([](std::uint64_t seed) {
        OneThread world(options_of(seed));
        world.part_at_random(seed + 1000);
        world.run([&](Channel& channel) {
            Engine engine = open_alone(channel);
            std::mt19937_64 random(seed + channel.self());
            RandomMemory memory(engine, random);
            for (int step = 0; step < 60; ++step) memory.step();
            memory.finish();
        });
    });
}

TEST(OneThread, requests_replies_and_barriers_go_on_with_hardly_any_room) {
    for_each_seed([](std::uint64_t seed) {
        OneThread world(options_of(seed));
        world.run([&](Channel& channel) {
            std::uint64_t answers = 0, asked = 0;
            std::vector<std::uint64_t> next(channel.nodes()), sent(channel.nodes());
            Engine* self = nullptr;
            std::optional<Handler<std::uint32_t, Node>> pass;
            Handlers handlers;
            const auto answer = handlers.add("answer", [&](Call&, Bytes) { ++answers; });
            const auto ask = handlers.add("ask", [&](Call& call, std::uint64_t number, Bytes payload) {
                EXPECT_EQ(number, next[call.source()]++);
                call.reply(answer, payload);
            });
            pass = handlers.add("pass", [&](Call&, std::uint32_t hops, Node origin) {
                if (hops == 0) good(self->send(origin, answer, Bytes{}));
                else good(self->send((self->node() + hops) % self->nodes(), *pass, hops - 1, origin));
            });
            Engine engine = open_alone(channel, std::move(handlers));
            self = &engine;
            good(engine.barrier());
            std::mt19937_64 random(seed + engine.node());
            const std::vector<std::byte> payload(100'000);
            std::deque<BarrierToken> barriers;
            for (int i = 0; i < 300; ++i) {
                const Node to = static_cast<Node>(random() % engine.nodes());
                switch (random() % 8) {
                case 1:
                    good(engine.send(to, *pass, static_cast<std::uint32_t>(random() % 10), engine.node())), ++asked;
                    break;
                default:
                    good(engine.send(to, ask, sent[to]++,
                                     Bytes(payload).first(random() % 20 == 0 ? random() % 100'000 : random() % 50)));
                    ++asked;
                }
                if (i % 10 == 0) barriers.push_back(engine.arrive());
                if (random() % 20 == 0 && !barriers.empty()) good(engine.wait(barriers.front())), barriers.pop_front();
            }
            EXPECT_TRUE(engine.wait_until([&] { return answers == asked; }, deadline()));
            for (const BarrierToken& token : barriers) good(engine.wait(token));
            settle(engine);
        });
    });
}

/// Requests and plain messages that handlers pass on to random nodes, for as many hops as the seed says, while hardly
/// anything may wait to be sent: all nodes hold back what they get, and yet all of it arrives.
TEST(OneThread, handlers_that_forward_never_block_each_other_though_all_of_them_are_full) {
    for_each_seed([](std::uint64_t seed) {
        OneThread world(options_of(seed));
        std::uint64_t begun = 0, ended = 0, plain_begun = 0, plain_ended = 0; // of all nodes, which are in one thread
        world.run([&](Channel& channel) {
            std::mt19937_64 random(seed * 131 + channel.self());
            const std::vector<std::byte> payload(2000);
            Handlers handlers;
            std::optional<Handler<std::uint32_t, Bytes>> pass;
            pass = handlers.add("pass", [&](Call& call, std::uint32_t left, Bytes content) {
                Engine& engine = call.engine();
                if (left == 0) return void(++ended);
                good(engine.send(static_cast<Node>(random() % engine.nodes()), *pass, left - 1, content));
            });
            auto setup = world.setup();
            setup.waiting_bytes_max = seed % 3 == 0 ? 0 : 3000;
            Engine engine = open(channel, std::move(handlers), setup);
            engine::ActiveMessages& messages = engine.dispatcher().messages();
            const auto send_plain = [&](std::uint32_t left) {
                const std::array<Bytes, 2> pieces{bytes_of(left), Bytes(payload).first(random() % 1000)};
                return messages.send_plain(static_cast<Node>(random() % engine.nodes()), pieces);
            };
            messages.set_plain_handler([&](pm::Message& message) {
                std::uint32_t left = 0;
                ASSERT_TRUE(read_value(message.bytes(), left));
                if (left == 0) return void(++plain_ended);
                good(send_plain(left - 1));
            });
            good(engine.barrier());
            for (int i = 0; i < 200; ++i) {
                world.note(engine.node(), "sends");
                const auto hops = static_cast<std::uint32_t>(random() % 12);
                const Bytes content = Bytes(payload).first(random() % payload.size());
                good(engine.send(static_cast<Node>(random() % engine.nodes()), *pass, hops, content)), ++begun;
                if (i % 4 == 0) good(send_plain(hops)), ++plain_begun;
            }
            world.note(engine.node(), "waits for the end");
            good(engine.barrier()); // nobody begins more
            engine.wait_until([&] { return ended == begun && plain_ended == plain_begun; });
            world.note(engine.node(), "ends");
            settle(engine);
        });
        EXPECT_EQ(ended, begun);
        EXPECT_EQ(plain_ended, plain_begun);
    });
}

/// Requests of all sizes, most of them large, that handlers pass on while windows are as small as they get: large ones
/// wait for windows, small ones pass or wait with them, calls and puts go on, and all of it arrives in order.
TEST(OneThread, large_requests_that_are_forwarded_never_block_each_other_though_windows_are_small) {
    for_each_seed([](std::uint64_t seed) {
        OneThread world(options_of(seed));
        std::uint64_t begun = 0, ended = 0; // of all nodes, which are in one thread
        world.run([&](Channel& channel) {
            std::mt19937_64 random(seed * 137 + channel.self());
            const std::vector<std::byte> payload(100'000);
            const auto some = [&] {
                const std::size_t most = random() % 3 == 0 ? 500 : random() % 2 == 0 ? 5000 : payload.size();
                return Bytes(payload).first(random() % most);
            };
            struct Numbers {
                std::uint64_t of_thread = 0, of_handlers = 0;
                std::uint64_t& of(bool is_forwarded) { return is_forwarded ? of_handlers : of_thread; }
            };
            std::vector<Numbers> next(channel.nodes()), sent(channel.nodes());
            Handlers handlers;
            std::optional<Handler<std::uint64_t, bool, std::uint32_t, Bytes>> pass;
            pass = handlers.add("pass", [&](Call& call, std::uint64_t number, bool is_forwarded, std::uint32_t left,
                                            Bytes) {
                EXPECT_EQ(number, next[call.source()].of(is_forwarded)++) << "requests of a node come in order";
                if (left == 0) return void(++ended);
                Engine& engine = call.engine();
                const Node to = static_cast<Node>(random() % engine.nodes());
                good(engine.send(to, *pass, sent[to].of_handlers++, true, left - 1, some()));
            });
            auto setup = world.setup();
            setup.waiting_bytes_max = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 50'000 : 1 << 20;
            setup.kept_bytes_max = 0; // windows are the smallest
            Engine engine = open(channel, std::move(handlers), setup);
            const auto memory = good(engine.memory().segment<std::byte>(payload.size()));
            good(engine.barrier());
            for (int i = 0; i < 120; ++i) {
                world.note(engine.node(), "sends");
                const Node to = static_cast<Node>(random() % engine.nodes());
                if (random() % 5 == 0) good(engine.memory().put(memory.at(to), some()));
                const auto hops = static_cast<std::uint32_t>(random() % 8);
                good(engine.send(to, *pass, sent[to].of_thread++, false, hops, some())), ++begun;
            }
            world.note(engine.node(), "waits for the end");
            good(engine.barrier()); // nobody begins more
            engine.wait_until([&] { return ended == begun; });
            good(engine.sync());
            world.note(engine.node(), "ends");
            settle(engine);
        });
        EXPECT_EQ(ended, begun);
    });
}

/// Either it was done, or the error names the node that is gone.
template <class T>
bool done_or_lost(const OneThread& world, Node self, const Result<T>& result, std::optional<Node> gone) {
    if (result) return true;
    if (world.is_lost(self)) return false; // to it all others are
    EXPECT_TRUE(gone && result.error().text().find("node " + std::to_string(*gone)) != std::string::npos)
        << result.error().text();
    return false;
}

TEST(OneThread, what_is_asked_of_a_lost_node_fails_by_its_name_and_all_else_goes_on) {
    for_each_seed([](std::uint64_t seed) {
        auto options = options_of(seed);
        options.nodes += 1;
        OneThread world(options);
        std::mt19937_64 fate(seed + 1000);
        const Node victim = static_cast<Node>(fate() % options.nodes);
        std::optional<Node> gone;
        std::uint64_t steps_left = 5 + fate() % 20;
        std::vector<Node> others;
        for (Node node = 0; node < options.nodes; ++node)
            if (node != victim) others.push_back(node);
        bool has_begun = false;
        world.meanwhile = [&] {
            if (!has_begun || gone || --steps_left != 0) return;
            gone = victim;
            world.lose(victim);
        };
        world.run([&](Channel& channel) {
            int handled = 0;
            Handlers handlers;
            const auto take = handlers.add("take", [&](Call&, Bytes) { ++handled; });
            std::vector<std::byte> content(200'000), target(200'000);
            Engine engine = open_alone(channel, std::move(handlers));
            const Node self = engine.node();
            const auto memory = good(engine.memory().segment<std::byte>(content.size()));
            const auto words = good(engine.memory().segment<std::uint64_t>(1));
            good(engine.barrier());
            has_begun = true;
            std::mt19937_64 random(seed + self);
            const auto check = [&](const auto& result) { return done_or_lost(world, self, result, gone); };
            for (int i = 0; i < 150 && !world.is_lost(self); ++i) {
                const Node to = static_cast<Node>(random() % engine.nodes());
                const std::size_t bytes = random() % 10 == 0 ? random() % content.size() : random() % 100;
                constexpr std::array names{"put",       "get",       "fetch_add", "send",
                                           "start_put", "start_get", "copy",      "sync"};
                const std::size_t what = random() % names.size();
                world.note(self, std::string(names[what]) + " with node " + std::to_string(to));
                const bool ok = [&] {
                    switch (what) {
                    case 0: return check(engine.memory().put(memory.at(to), Bytes(content).first(bytes)));
                    case 1: return check(engine.memory().get(memory.at(to), MutableBytes(target).first(bytes)));
                    case 2: return check(engine.memory().fetch_add(words.at(to), 1));
                    case 3: return check(engine.send(to, take, Bytes(content).first(bytes / 2)));
                    case 4: return check(engine.memory().start_put(memory.at(to), Bytes(content).first(bytes)));
                    case 5: return check(engine.memory().start_get(memory.at(to), MutableBytes(target).first(bytes)));
                    case 6:
                        return check(
                            engine.memory().copy(memory.at(to), memory.at(others[random() % others.size()]), bytes));
                    default: return check(engine.sync());
                    }
                }();
                world.note(self, "sync after an error");
                if (!ok && !world.is_lost(self)) check(engine.sync()); // more of the same may be told
            }
            world.note(self, "the last sync");
            check(engine.sync());
            if (world.is_lost(self)) return;
            if (self == victim) { // at the latest now
                gone = victim;
                return world.lose(self);
            }
            // It is gone, or will be; the others meet without it, and a barrier of all says who is missing.
            world.note(self, "a barrier of all");
            if (const auto all = engine.barrier(); !all) expect_error(all, {"node " + std::to_string(victim)});
            else ADD_FAILURE() << "a barrier without node " << victim;
            world.note(self, "sync after the barrier");
            (void)check(engine.sync());
            world.note(self, "what survivors do");
            good(engine.wait(good(engine.arrive(others))));
            const Node next = others[(static_cast<std::size_t>(std::ranges::find(others, self) - others.begin()) + 1) %
                                     others.size()];
            good(engine.memory().write(words.at(next), 4711));
            good(engine.send(next, take, Bytes{}));
            good(engine.sync());
            good(engine.wait(good(engine.arrive(others))));
            EXPECT_EQ(words[0], 4711u);
            expect_error(engine.memory().read(words.at(victim)), {"node " + std::to_string(victim)});
            good(engine.wait(good(engine.arrive(others))));
        });
    });
}

TEST(OneThread, whoever_waits_for_a_lost_node_is_told) {
    for_each_seed([](std::uint64_t seed) {
        OneThread world({.nodes = 3, .seed = seed});
        bool is_ready = false;
        world.meanwhile = [&] {
            if (is_ready && !world.is_lost(2)) world.lose(2);
        };
        world.run([&](Channel& channel) {
            Handlers handlers;
            std::uint64_t content = 5, target = 0;
            Flag given = 0, arrived = 0;
            Engine engine = open_alone(channel, std::move(handlers));
            good(engine.barrier());
            is_ready = true;
            if (engine.node() == 2) {
                EXPECT_TRUE(engine.wait_until([&] { return world.is_lost(2); }, deadline()));
                return;
            }
            world.note(engine.node(), engine.node() == 0 ? "accept" : "offer");
            if (engine.node() == 0) {
                good(engine.memory().accept(1, 2, std::as_writable_bytes(std::span(&target, 1)), &arrived));
                expect_error(engine.memory().wait(arrived, 1, deadline()), {"node 2"});
            } else {
                good(engine.memory().offer(1, 2, bytes_of(content), &given));
                expect_error(engine.memory().wait(given, 1, deadline()), {"node 2"});
            }
            const std::vector<Node> both{0, 1};
            world.note(engine.node(), "a barrier of two");
            good(engine.wait(good(engine.arrive(both))));
            world.note(engine.node(), "a segment");
            expect_error(engine.memory().segment<int>(1), {"node 2"}); // all must take part
            good(engine.wait(good(engine.arrive(both))));
        });
    });
}

/// Barriers of all nodes and of some of them, in an order that all keep to, several at a time. Who has come to which is
/// counted here: nodes are in one thread.
class BarrierPlan {
public:
    BarrierPlan(Node nodes, std::mt19937_64& random) {
        sets_.emplace_back(nodes);
        std::iota(sets_[0].begin(), sets_[0].end(), Node{0});
        for (auto more = random() % 4; more > 0; --more) {
            std::vector<Node> some = sets_[0];
            std::shuffle(some.begin(), some.end(), random);
            some.resize(1 + random() % nodes);
            std::ranges::sort(some);
            if (std::ranges::find(sets_, some) == sets_.end()) sets_.push_back(some);
        }
        for (int i = 0; i < 60; ++i) order_.push_back(random() % sets_.size());
        come_.assign(sets_.size(), std::vector<std::size_t>(order_.size()));
    }

    /// Whether a barrier that failed lacks one of its members.
    using IsMissing = std::function<bool(const std::vector<Node>& members, const Error& why)>;

    /// One node's part.
    void run(Engine& engine, std::mt19937_64 random, const IsMissing& is_missing) {
        std::vector<std::size_t> next(sets_.size());
        std::deque<Coming> under_way;
        const auto leave = [&] {
            const Coming first = under_way.front();
            under_way.pop_front();
            if (const auto left = engine.wait(first.token)) expect_all_have_come(first);
            else EXPECT_TRUE(is_missing(sets_[first.set], left.error())) << left.error().text();
        };
        for (const std::size_t set : order_) {
            std::vector<Node> members = sets_[set];
            if (std::ranges::find(members, engine.node()) == members.end()) continue;
            std::shuffle(members.begin(), members.end(), random);
            ++come_[set][next[set]];
            const BarrierToken token = set == 0 ? engine.arrive() : good(engine.arrive(members));
            under_way.push_back({set, next[set]++, token});
            const Coming& any = under_way[random() % under_way.size()];
            if (engine.test(any.token)) expect_all_have_come(any);
            while (!under_way.empty() && random() % 3 == 0) leave();
        }
        while (!under_way.empty()) leave();
    }

private:
    struct Coming {
        std::size_t set, sequence;
        BarrierToken token;
    };
    void expect_all_have_come(const Coming& coming) const {
        EXPECT_EQ(come_[coming.set][coming.sequence], sets_[coming.set].size())
            << "barrier " << coming.sequence << " of set " << coming.set << " is complete";
    }

    std::vector<std::vector<Node>> sets_; // the first has all nodes
    std::vector<std::size_t> order_;      // of sets
    std::vector<std::vector<std::size_t>> come_; // nodes, by set and sequence
};

TEST(OneThread, nobody_leaves_a_barrier_before_the_last_has_come_on_whatever_hosts_nodes_are) {
    for_each_seed([](std::uint64_t seed) {
        const auto options = engine_test::options_of(seed, 6);
        std::mt19937_64 fate(seed + 2000);
        OneThread world(options);
        if (fate() % 4 != 0) world.share_memory(static_cast<Node>(1 + fate() % options.nodes));
        BarrierPlan plan(options.nodes, fate);
        world.run([&](Channel& channel) {
            Engine engine = open(channel, {}, world.setup());
            world.agree(engine);
            const auto nobody_is = [](const std::vector<Node>&, const Error&) { return false; };
            plan.run(engine, std::mt19937_64(seed * 31 + engine.node()), nobody_is);
            good(engine.barrier());
        });
    });
}

TEST(OneThread, a_barrier_fails_by_the_name_of_a_lost_member_and_others_go_on) {
    for_each_seed([](std::uint64_t seed) {
        auto options = engine_test::options_of(seed, 5);
        options.nodes += 1;
        std::mt19937_64 fate(seed + 3000);
        const Node victim = static_cast<Node>(fate() % options.nodes);
        OneThread world(options);
        world.steps_between = 100;
        std::uint64_t steps_left = 1 + fate() % 40;
        world.meanwhile = [&] {
            if (!world.is_lost(victim) && --steps_left == 0) world.lose(victim);
        };
        BarrierPlan plan(options.nodes, fate);
        Node done = 0;
        world.run([&](Channel& channel) {
            Engine engine = open(channel, {}, world.setup());
            const Node self = engine.node();
            const auto is_missing = [&](const std::vector<Node>& members, const Error& why) {
                if (world.is_lost(self)) return true; // to it all others are lost
                return std::ranges::find(members, victim) != members.end() &&
                       why.text().find("node " + std::to_string(victim) + " ") != std::string::npos;
            };
            plan.run(engine, std::mt19937_64(seed * 31 + self), is_missing);
            if (self == victim) return world.lose(self); // at the latest now
            expect_error(engine.barrier(), {"node " + std::to_string(victim)});
            std::vector<Node> others;
            for (Node node = 0; node < engine.nodes(); ++node)
                if (node != victim) others.push_back(node);
            good(engine.wait(good(engine.arrive(others))));
            // Nobody leaves while others still tell each other what was given up: they would wait for room in vain.
            ++done;
            int looks = 0;
            engine.wait_until([&] { return done == others.size() && ++looks > 1000; });
        });
    });
}

/// The same without stacks: one thread calls what does not wait, and poll().
TEST(OneThread, a_program_that_only_polls_gets_everything_done) {
    for_each_seed([](std::uint64_t seed) {
        device::simulated::Network network({.nodes = 3, .seed = seed, .refusal_chance = 0.2});
        std::vector<std::unique_ptr<Channel>> channels;
        std::vector<Engine> engines;
        std::array<std::uint64_t, 3> answers{};
        std::vector<Handler<std::uint64_t>> asks;
        for (Node node = 0; node < 3; ++node) {
            channels.push_back(network.open(node));
            Handlers handlers;
            const auto answer =
                handlers.add("answer", [&answers, node](Call&, std::uint64_t value) { answers[node] += value; });
            asks.push_back(
                handlers.add("ask", [answer](Call& call, std::uint64_t value) { call.reply(answer, value * 2); }));
            engines.push_back(open_alone(*channels[node], std::move(handlers)));
        }
        const auto poll_until = [&](const auto& done) {
            for (int i = 0; i < 1'000'000 && !done(); ++i)
                for (Engine& engine : engines) engine.poll();
            ASSERT_TRUE(done());
        };
        constexpr std::size_t bytes = 300'000;
        std::vector<global_ptr<std::byte>> memory;
        for (Engine& engine : engines) memory.push_back(good(engine.memory().allocate<std::byte>(bytes)));
        const auto content = pattern(bytes, seed);
        std::vector<std::byte> target(bytes), taken(1000);
        Flag put_done = 0, got = 0, given = 0, arrived = 0;
        good(engines[0].memory().start_put(memory[1], content));
        good(engines[0].start_sync(put_done));
        good(engines[2].send(1, asks[2], 21u));
        good(engines[1].memory().accept(9, 2, taken, &arrived));
        good(engines[2].memory().offer(9, 1, Bytes(content).first(1000), &given));
        poll_until([&] {
            return load_flag(put_done) == 1 && load_flag(arrived) == 1 && load_flag(given) == 1 && answers[2] == 42;
        });
        EXPECT_TRUE(is_pattern(taken, seed));
        good(engines[2].memory().start_get(memory[1], target, &got));
        poll_until([&] { return load_flag(got) == 1; });
        EXPECT_EQ(target, content);
        std::vector<BarrierToken> tokens;
        for (Engine& engine : engines) {
            for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_FALSE(engines[i].test(tokens[i]));
            tokens.push_back(engine.arrive());
        }
        poll_until(
            [&] { return engines[0].test(tokens[0]) && engines[1].test(tokens[1]) && engines[2].test(tokens[2]); });
    });
}

} // namespace
} // namespace kumi::engine_test
