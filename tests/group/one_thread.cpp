// Whole jobs in one thread, by seed: random sets, sizes and masters on a network that delays, refuses, is parted and
// loses nodes. KUMI_SEED=N replays one of them, KUMI_SEEDS=N runs so many.

#include "engine/one_thread.hpp"
#include "engine/random_memory.hpp"
#include "group/one_loss.hpp"
#include "group/random_job.hpp"
#include "group/together.hpp"

#include "kumi/group/plan/probing.hpp"
#include "kumi/group/wire/collective.hpp"

#include <algorithm>

namespace kumi::group_test {
namespace {

using engine_test::OneThread;

/// Looks after nobody, for its clock stands still: for tests that count messages.
const Setup unhurried{.in_background = false, .spin_max = Duration{0}, .clock = [] { return Instant{}; }};

void for_each_seed(const std::function<void(std::uint64_t)>& run) { engine_test::for_each_seed(30, run); }

OneThread::Options options_of(std::uint64_t seed) { return engine_test::options_of(seed, 9); }

/// Clusters and hosts as the seed says, or none.
Topology topology_of(std::uint64_t seed, Node nodes) {
    std::mt19937_64 random(seed * 104729);
    std::vector<std::vector<std::uint32_t>> levels(random() % 3, std::vector<std::uint32_t>(nodes));
    for (Node node = 0; node < nodes; ++node)
        for (std::uint32_t domain = 0; auto& level : levels) {
            domain = domain * 3 + static_cast<std::uint32_t>(random() % 3); // domains lie in domains
            level[node] = domain;
        }
    return Topology(levels);
}

/// One after the other, and none: each master has its own.
std::optional<group::Way> way_of(std::uint64_t seed, Node master) {
    const auto way = (seed + master) % (group::way_names.size() + 1);
    return way == group::way_names.size() ? std::nullopt : std::optional(static_cast<group::Way>(way));
}

struct Job {
    std::uint64_t seed;
    Node nodes;
    std::uint64_t each;
    std::vector<std::vector<std::pair<Set, std::size_t>>> plans; // by master

    Job(std::uint64_t s, Node n, std::uint64_t count) : seed(s), nodes(n), each(count) {
        for (Node master = 0; master < nodes; ++master) {
            std::mt19937_64 random(seed + master);
            auto& plan = plans.emplace_back();
            for (std::uint64_t number = 0; number < each; ++number) {
                Set to = random_set(random, nodes);
                plan.emplace_back(std::move(to), random_size(random, 30'000));
            }
        }
    }
};

TEST(MulticastsInOneThread, multicasts_arrive_once_and_in_order_though_the_network_is_parted) {
    for_each_seed([](std::uint64_t seed) {
        const auto options = options_of(seed);
        const Job job(seed, options.nodes, 20);
        OneThread world(options);
        if (seed % 3 == 0) world.share_memory();
        world.part_at_random(seed + 1000);
        world.run([&](Channel& channel) {
            Member member;
            std::vector<std::vector<std::uint64_t>> handled(job.nodes), expected(job.nodes);
            std::size_t left = 0;
            for (Node master = 0; master < job.nodes; ++master)
                for (std::uint64_t number = 0; number < job.each; ++number)
                    if (job.plans[master][number].first.contains(channel.self()))
                        expected[master].push_back(number), ++left;
            const auto note = member.handlers.add("note", [&](Call& call, std::uint64_t number, Bytes content) {
                EXPECT_EQ(content.size(), job.plans[call.source()][number].second);
                EXPECT_TRUE(is_pattern(content, number));
                handled[call.source()].push_back(number);
                --left;
            });
            member.open(channel, world.setup(), topology_of(seed, job.nodes), wide, way_of(seed, channel.self()));
            std::vector<Future<Set>> done;
            for (std::uint64_t number = 0; number < job.each; ++number) {
                const auto& [to, bytes] = job.plans[channel.self()][number];
                done.push_back(member.groups->multicast(to, note, number, Bytes(pattern(bytes, number))));
                if (number % 3 == 0) member.engine->poll();
            }
            for (Future<Set>& future : done) EXPECT_TRUE(good(future.get()).empty());
            EXPECT_TRUE(member.engine->wait_until([&] { return left == 0; }));
            EXPECT_EQ(handled, expected);
            settle(*member.engine);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(MulticastsInOneThread, who_is_no_member_neither_gets_nor_sends_a_message) {
    for_each_seed([](std::uint64_t seed) {
        auto options = options_of(seed);
        options.nodes += 3;
        OneThread world(options);
        std::mt19937_64 random(seed);
        std::vector<std::pair<Set, std::size_t>> plan;
        Set concerned{0};
        for (int i = 0; i < 5; ++i) {
            Set to = random_set(random, options.nodes);
            to.remove(options.nodes - 1);
            if (to.empty()) to.add(1);
            concerned |= to;
            plan.emplace_back(std::move(to), random_size(random, 30'000));
        }
        bool is_over = false;
        std::size_t open = options.nodes;
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup(), topology_of(seed, options.nodes), wide, way_of(seed, channel.self()));
            std::vector<std::size_t> tags;
            if (channel.self() == 0) {
                std::vector<Future<Set>> done;
                for (std::size_t i = 0; i < plan.size(); ++i)
                    done.push_back(member.groups->multicast(plan[i].first, i, pattern(plan[i].second, i)));
                for (Future<Set>& future : done) {
                    while (!future.is_ready()) (void)member.groups->next(now()), member.engine->poll();
                    EXPECT_TRUE(good(future.get()).empty());
                }
                is_over = true;
            }
            while (!is_over) (void)member.groups->next(now()), member.engine->poll();
            for (Node to = 0; to < options.nodes; ++to) {
                const bool may = concerned.contains(channel.self()) && concerned.contains(to);
                EXPECT_TRUE(may || channel.sent(to).messages == 0) << "from node " << channel.self() << " to " << to;
            }
            --open;
            while (open != 0) member.engine->poll();
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(MulticastsInOneThread, a_master_sends_as_much_to_many_as_to_two) {
    constexpr Node master = 128;
    engine_test::for_each_seed(2, [](std::uint64_t seed) {
        OneThread world({.nodes = master + 1, .seed = seed});
        std::size_t open = master + 1;
        world.run([&](Channel& channel) {
            Member member;
            const auto note = member.handlers.add(
                "note", [&](Call&, std::uint64_t size, Bytes content) { EXPECT_EQ(content.size(), size); });
            member.open(channel, unhurried);
            if (channel.self() == master) {
                for (const std::size_t bytes : {0u, 64u, 4096u, 100'000u})
                    for (Node count = 2; count <= master; count *= 2) {
                        Set to;
                        for (Node i = 0; i < count; ++i) to.add(master / count * i);
                        const group::Choice choice = member.groups->choice(bytes + sizeof(std::uint64_t), count);
                        const std::uint64_t messages =
                            goes_in_blocks(choice.way)
                                ? (bytes + sizeof(std::uint64_t) + choice.block_bytes - 1) / choice.block_bytes
                                : 1;
                        std::vector<pm::Traffic> before;
                        for (Node node = 0; node < master; ++node) before.push_back(channel.sent(node));
                        EXPECT_TRUE(
                            good(member.groups->multicast(to, note, std::uint64_t{bytes}, Bytes(pattern(bytes, 0)))
                                     .get())
                                .empty());
                        Set first;
                        for (Node node = 0; node < master; ++node) {
                            const std::uint64_t sent = channel.sent(node).messages - before[node].messages;
                            if (sent == 0) continue;
                            first.add(node);
                            EXPECT_EQ(sent, messages) << bytes << " bytes to " << count;
                            // A head with each, and the set, which takes a bit for each node at most.
                            EXPECT_LE(channel.sent(node).bytes - before[node].bytes,
                                      bytes + messages * 128 + master / 8)
                                << bytes << " bytes to " << count;
                        }
                        EXPECT_EQ(first.size(), 1u) << bytes << " bytes to " << count;
                        EXPECT_TRUE(to.contains(first.first()));
                    }
            }
            --open;
            member.engine->wait_until([&] { return open == 0; });
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(MulticastsInOneThread, what_messages_take_is_measured_once_and_with_members_only) {
    engine_test::for_each_seed(5, [](std::uint64_t seed) {
        OneThread world({.nodes = 4, .seed = seed, .refusal_chance = 0.1, .in_flight_max = 16});
        bool is_over = false;
        world.run([&](Channel& channel) {
            Member member;
            const auto note = member.handlers.add("note", [](Call&) {});
            // Nodes 0 and 1 share a host, and 2 and 3 do.
            member.open(channel, unhurried, Topology({{0, 0, 2, 2}}), std::nullopt);
            if (channel.self() != 0) return (void)member.engine->wait_until([&] { return is_over; });
            const auto cast = [&](const Set& to) {
                EXPECT_TRUE(good(member.groups->multicast(to, note).get()).empty());
                for (int i = 0; i < 200; ++i) member.engine->poll(); // all that follows from it
            };
            cast({0, 1});
            EXPECT_EQ(channel.sent(1).messages, 1u) << "measured with a node of this host";
            std::vector<Future<Set>> done;
            for (int i = 0; i < 10; ++i) done.push_back(member.groups->multicast({0, 3}, note));
            EXPECT_LE(channel.sent(3).messages, 10u + 1) << "a train left though another is not back";
            for (Future<Set>& one : done) EXPECT_TRUE(good(one.get()).empty());
            for (int i = 0; i < 90; ++i) cast({0, 3}); // where there was no room it goes on with the next one
            const std::uint64_t sent = channel.sent(3).messages;
            EXPECT_GE(sent, 100 + group::Probing::rounds * (1 + 2 * group::Probing::messages_max));
            for (int i = 0; i < 3; ++i) cast({0, 3});
            EXPECT_EQ(channel.sent(3).messages, sent + 3) << "measured again";
            EXPECT_EQ(channel.sent(2).messages, 0u);
            EXPECT_GT(member.groups->costs().latency_us, 0);
            is_over = true;
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(LossesInOneThread, a_lost_member_is_told_of_and_all_others_get_it) {
    for_each_seed([](std::uint64_t seed) {
        auto options = options_of(seed);
        options.nodes += 2;
        const Job job(seed, options.nodes, 15);
        OneThread world(options);
        if (seed % 3 == 0) world.share_memory();
        std::mt19937_64 fate(seed + 1000);
        const Node victims = static_cast<Node>(1 + fate() % (options.nodes > 4 ? 2 : 1));
        Set lost;
        std::uint64_t steps = 0;
        const std::uint64_t first = fate() % 20;
        world.steps_between = 200;
        // Node 0 stays: it is the master.
        world.meanwhile = [&] {
            if (++steps < first || lost.size() == victims) return;
            const Node victim = static_cast<Node>(1 + fate() % (options.nodes - 1));
            if (lost.contains(victim)) return;
            lost.add(victim);
            world.lose(victim);
        };
        std::size_t open = options.nodes;
        world.run([&](Channel& channel) {
            Member member;
            std::vector<std::uint64_t> handled;
            const auto note = member.handlers.add("note", [&](Call&, std::uint64_t number, Bytes content) {
                EXPECT_TRUE(is_pattern(content, number));
                handled.push_back(number);
            });
            const auto identify = member.handlers.function(
                "identify", [&](const std::vector<std::byte>&) { return std::vector<Node>{channel.self()}; });
            const auto join =
                member.handlers.function("join", [](std::vector<Node> some, const std::vector<Node>& more) {
                    some.insert(some.end(), more.begin(), more.end());
                    return some;
                });
            member.open(channel, world.setup(), topology_of(seed, job.nodes), wide, way_of(seed, channel.self()));
            if (channel.self() == 0) {
                std::vector<Future<Set>> done;
                std::vector<Future<group::Reduced<std::vector<Node>>>> reduced;
                for (std::uint64_t number = 0; number < job.each; ++number) {
                    const auto& [to, bytes] = job.plans[0][number];
                    done.push_back(member.groups->multicast(to, note, number, Bytes(pattern(bytes, number))));
                    if (number % 3 == 0)
                        reduced.push_back(member.groups->reduce(to, join, identify, pattern(bytes, number)));
                    for (auto polls = fate() % 50; polls > 0; --polls) member.engine->poll();
                }
                for (std::uint64_t number = 0; number < job.each; ++number) {
                    world.note(0, fmt::format("waiting for {} to {}, {} bytes", number,
                                              job.plans[0][number].first.text(), job.plans[0][number].second));
                    const Set absent = good(done[number].get());
                    EXPECT_EQ(absent - lost, Set{})
                        << "number " << number << " to " << job.plans[0][number].first.text();
                    EXPECT_EQ(absent - job.plans[0][number].first, Set{});
                }
                for (std::uint64_t number = 0; number < job.each; number += 3) {
                    const Set& to = job.plans[0][number].first;
                    world.note(0, fmt::format("waiting for what {} answer to {}", to.text(), number));
                    const auto answers = reduced[number / 3].get();
                    if (to - lost == Set{} && !answers) continue; // none is left
                    Set who;
                    for (const Node node : good(answers).value) {
                        EXPECT_FALSE(who.contains(node)) << "node " << node << " is counted twice";
                        who.add(node);
                    }
                    EXPECT_EQ(who | answers->missing, to) << number;
                    EXPECT_EQ(answers->missing - lost, Set{});
                }
            }
            --open;
            member.engine->wait_until([&] { return open == 0 || world.is_lost(channel.self()); });
            if (lost.contains(channel.self())) return;
            std::vector<std::uint64_t> expected;
            for (std::uint64_t number = 0; number < job.each; ++number)
                if (job.plans[0][number].first.contains(channel.self())) expected.push_back(number);
            EXPECT_EQ(handled, expected) << "node " << channel.self();
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed << ", lost " << lost.text();
    });
}

TEST(LossesInOneThread, large_answers_of_all_that_are_not_lost_arrive_and_nothing_of_them_stays) {
    for_each_seed([](std::uint64_t seed) {
        auto options = options_of(seed);
        options.nodes += 2;
        OneLoss loss(seed, options);
        const Node master = loss.victim == 0 ? 1 : 0;
        const auto size_of = [&](Node node, std::uint64_t number) {
            return (seed * 7919 + node * 131'071 + number * 104'729) % 400'000;
        };
        Set dirty = Set::range(0, options.nodes); // nodes that have something left, and have not said otherwise
        loss.world.run([&](Channel& channel) {
            Member member;
            const auto answer = member.handlers.function("answer", [&](std::uint64_t number) {
                return pattern(size_of(channel.self(), number), channel.self() + number);
            });
            member.open(channel, loss.world.setup(), topology_of(seed, options.nodes), wide, way_of(seed, 0));
            if (channel.self() == master) {
                std::vector<Set> sets;
                std::vector<Future<group::Gathered<std::vector<std::byte>>>> done;
                for (std::uint64_t number = 0; number < 5; ++number) {
                    sets.push_back(random_set(loss.fate, options.nodes));
                    done.push_back(member.groups->gather(sets.back(), answer, number));
                }
                for (std::uint64_t number = 0; number < done.size(); ++number) {
                    loss.world.note(master, fmt::format("waits for what {} answer", sets[number].text()));
                    Set who;
                    for (const auto& [node, came] : good(done[number].get())) {
                        EXPECT_EQ(came.size(), size_of(node, number));
                        EXPECT_TRUE(is_pattern(came, node + number)) << "node " << node;
                        who.add(node);
                    }
                    EXPECT_EQ(who - sets[number], Set{});
                    EXPECT_EQ(sets[number] - who - Set{loss.victim}, Set{});
                }
            }
            while (!dirty.empty() && !loss.world.is_lost(channel.self())) {
                member.engine->poll();
                if (member.groups->kept() == 0) dirty.remove(channel.self());
                else dirty.add(channel.self());
            }
            dirty.remove(channel.self());
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed << ", " << loss.text();
    });
}

TEST(MulticastsInOneThread, on_one_host_a_content_is_written_once_and_its_memory_used_again) {
    constexpr std::size_t bytes = 100'000;
    constexpr Node nodes = 6;
    OneThread world({.nodes = nodes, .seed = 1});
    world.share_memory();
    std::uint64_t sent = 0;
    world.run([&](Channel& channel) {
        Member member;
        const auto note =
            member.handlers.add("note", [](Call&, Bytes content) { EXPECT_TRUE(is_pattern(content, 7)); });
        member.open(channel, world.setup());
        const auto first_free = [&] {
            const auto memory = good(member.engine->memory().allocate<char>(1));
            good(member.engine->memory().release(memory));
            return memory.offset();
        };
        good(member.engine->barrier());
        const std::uint64_t free_before = first_free();
        const int count = channel.self() == 0 ? 20 : 0;
        for (int i = 0; i < count; ++i)
            EXPECT_TRUE(
                good(member.groups->multicast(Set::range(0, nodes), note, Bytes(pattern(bytes, 7))).get()).empty());
        good(member.engine->barrier());
        EXPECT_EQ(first_free(), free_before);
        for (Node to = 0; to < nodes; ++to) sent += channel.sent(to).bytes;
        settle(*member.engine);
    });
    EXPECT_LT(sent, bytes);
}

TEST(MulticastsInOneThread, where_the_heap_of_a_host_has_no_room_a_content_goes_with_messages) {
    constexpr std::size_t bytes = 100'000;
    OneThread world({.nodes = 3, .seed = 1});
    world.share_memory();
    world.run([&](Channel& channel) {
        Member member;
        int handled = 0;
        const auto note = member.handlers.add("note", [&](Call&, Bytes content) {
            EXPECT_TRUE(is_pattern(content, 7));
            ++handled;
        });
        member.open(channel, world.setup());
        if (channel.self() == 0) {
            (void)good(member.engine->memory().allocate<char>(engine_test::HostMemory::bytes_each / 2 - bytes / 2));
            EXPECT_TRUE(good(member.groups->multicast({0, 1, 2}, note, Bytes(pattern(bytes, 7))).get()).empty());
            EXPECT_GT(channel.sent(1).bytes + channel.sent(2).bytes, bytes);
        }
        good(member.engine->barrier());
        EXPECT_EQ(handled, 1);
        settle(*member.engine);
    });
}

/// Nodes, masters among them, and links that are lost on one side: as the seed says, while a job goes on.
class Losses {
public:
    Losses(OneThread& world, Node nodes, std::uint64_t seed)
        : world_(world), nodes_(nodes), fate_(seed), left_(1 + fate_() % 4) {
        world.steps_between = 100 + fate_() % 400;
        world.meanwhile = [this] { lose_something(); };
    }

    bool is_lost(Node node) const { return lost.contains(node); }
    /// Somebody may have called it lost.
    bool is_doubtful(Node node) const { return lost.contains(node) || cut.contains(node); }
    std::string text() const { return fmt::format("lost {}, without a link {}", lost.text(), cut.text()); }

    Set lost;
    Set cut;

private:
    void lose_something() {
        if (left_ == 0 || fate_() % 4 != 0) return;
        --left_;
        const Node one = static_cast<Node>(fate_() % nodes_),
                   other = static_cast<Node>((one + 1 + fate_() % (nodes_ - 1)) % nodes_);
        if (fate_() % 3 == 0 && lost.size() + 2 < nodes_) {
            lost.add(one);
            return world_.lose(one);
        }
        cut |= Set{one, other};
        world_.lose_link(one, other);
    }

    OneThread& world_;
    Node nodes_;
    std::mt19937_64 fate_;
    std::uint64_t left_;
};

TEST(LossesInOneThread, whoever_is_lost_and_whoever_thinks_so_all_else_arrives_in_order_and_nothing_waits_or_stays) {
    for_each_seed([](std::uint64_t seed) {
        auto options = options_of(seed);
        options.nodes += 2;
        const Job job(seed, options.nodes, 12);
        OneThread world(options);
        Losses losses(world, options.nodes, seed + 1000);
        // by node, by master
        std::vector<std::vector<std::vector<std::uint64_t>>> handled(
            job.nodes, std::vector<std::vector<std::uint64_t>>(job.nodes));
        std::vector<std::vector<Set>> missing(job.nodes); // by master, by number
        std::size_t open = options.nodes, dirty = options.nodes;
        world.run([&](Channel& channel) {
            const Node self = channel.self();
            Member member;
            const auto note = member.handlers.add("note", [&](Call& call, std::uint64_t number, Bytes content) {
                EXPECT_TRUE(is_pattern(content, number));
                handled[self][call.source()].push_back(number);
            });
            member.open(channel, world.setup(), topology_of(seed, job.nodes), wide);
            std::vector<Future<Set>> done;
            for (std::uint64_t number = 0; number < job.each && !world.is_lost(self); ++number) {
                const auto& [to, bytes] = job.plans[self][number];
                world.note(self, fmt::format("to send {} to {}; {}", number, to.text(), losses.text()));
                done.push_back(member.groups->multicast(to, note, number, Bytes(pattern(bytes, number))));
                for (auto polls = seed % 20; polls > 0; --polls) member.engine->poll();
            }
            for (std::uint64_t number = 0; number < done.size() && !world.is_lost(self); ++number) {
                world.note(self, fmt::format("waiting for {} to {}, {} bytes; {}", number,
                                             job.plans[self][number].first.text(), job.plans[self][number].second,
                                             losses.text()));
                missing[self].push_back(good(done[number].get()));
            }
            --open;
            world.note(self, fmt::format("waiting for the others; {}", losses.text()));
            member.engine->wait_until([&] { return open == 0 || world.is_lost(self); });
            if (world.is_lost(self)) return;
            world.note(self, fmt::format("waiting for what it still has; {}", losses.text()));
            for (bool was_clean = false; dirty > losses.lost.size() && !world.is_lost(self); member.engine->poll())
                if (const bool is_clean = member.groups->kept() == 0; is_clean != std::exchange(was_clean, is_clean))
                    is_clean ? --dirty : ++dirty;
        });
        for (Node master = 0; master < job.nodes; ++master) {
            for (Node node = 0; node < job.nodes; ++node)
                EXPECT_TRUE(std::ranges::is_sorted(handled[node][master], std::less_equal<>()))
                    << "at node " << node << " of node " << master << ": "
                    << testing::PrintToString(handled[node][master]);
            if (losses.is_lost(master)) continue;
            for (std::uint64_t number = 0; number < job.each; ++number) {
                const Set& to = job.plans[master][number].first;
                for (const Node node : to) {
                    const bool is_missing = missing[master][number].contains(node);
                    EXPECT_TRUE(!is_missing || losses.is_doubtful(node)) << "node " << node << " was there";
                    EXPECT_TRUE(is_missing || losses.is_lost(node) ||
                                std::ranges::count(handled[node][master], number) == 1)
                        << number << " of node " << master << " at node " << node;
                }
            }
        }
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed << ", " << losses.text();
    });
}

TEST(LossesInOneThread, jobs_at_random_in_which_a_node_leaves_are_right_for_all_others) {
    for_each_seed([](std::uint64_t seed) {
        auto options = options_of(seed);
        options.nodes += 2;
        RandomJob job(seed, options.nodes, 12, 30'000);
        std::mt19937_64 random(seed);
        if (random() % 4 != 0) job.leavers = {static_cast<Node>(random() % options.nodes)};
        job.leave_after = random() % 12;
        OneThread world(options);
        std::size_t dirty = options.nodes - job.leavers.size();
        world.run([&](Channel& channel) {
            std::optional<Participant> participant;
            participant.emplace(channel, job, world.setup(), topology_of(seed, options.nodes));
            if (job.leavers.contains(channel.self())) {
                participant->run();
                participant.reset(); // it leaves when it has passed on what it had to
                return world.lose(channel.self());
            }
            // Nobody else leaves before nothing is left anywhere, also of what the one that left had begun.
            try {
                participant->run();
            } catch (const engine_test::Stop&) {
                dirty = 0;
                throw;
            }
            for (bool was_clean = false; dirty > 0;)
                if (const bool is_clean = participant->clear(); is_clean != std::exchange(was_clean, is_clean))
                    is_clean ? --dirty : ++dirty;
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed << ", left " << job.leavers.text();
    });
}

TEST(MulticastsInOneThread, into_memory_do_what_a_model_says_though_the_network_is_parted) {
    for_each_seed([](std::uint64_t seed) {
        OneThread world(engine_test::options_of(seed, 4));
        world.part_at_random(seed + 1000);
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup(), {}, wide);
            const Set all = Set::range(0, channel.nodes());
            std::mt19937_64 random(seed + channel.self());
            engine_test::RandomMemory memory(*member.engine, random, [&](global_ptr<std::byte> place, Bytes content) {
                (void)member.groups->multicast(all, place, content);
            });
            for (int step = 0; step < 40; ++step) memory.step();
            memory.finish();
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

// ---- collectives

/// A call that all members of a set make, and what it answers; nothing: an error, which is checked.
struct Planned {
    Set set;
    unsigned what;
    std::size_t count;
    Node root; // rank
    group::Order order;
};

std::vector<Planned> plan_of(std::uint64_t seed, Node nodes, std::size_t calls) {
    std::mt19937_64 random(seed);
    std::vector<Planned> plan;
    for (std::size_t i = 0; i < calls; ++i) {
        Set set = random_set(random, nodes);
        if (i % 3 != 0) set = plan.back().set; // several on one set
        const Node root = static_cast<Node>(random() % set.size());
        plan.push_back({std::move(set), static_cast<unsigned>(random() % 6), random_size(random, 40'000) / 4, root,
                        random() % 4 == 0 ? group::Order::by_rank : group::Order::tree});
    }
    return plan;
}

/// Whether it went well; then the result has been looked at. `number` is that of the call.
Result<void> call(group::Group& group, const Planned& planned, std::uint32_t number) {
    const auto value = [&](Node rank) { return number * 1000 + rank; };
    const std::uint32_t size = group.size(), rank = group.rank();
    std::uint32_t total = 0, before = 0;
    for (Node i = 0; i < size; ++i) total += value(i), before += i < rank ? value(i) : 0;
    const std::vector<std::uint32_t> mine(planned.count, value(rank));
    std::vector<std::uint32_t> result(planned.count), all(planned.count * size);
    const auto is_all = [](const std::vector<std::uint32_t>& values, std::uint32_t expected) {
        return std::ranges::all_of(values, [&](std::uint32_t one) { return one == expected; });
    };
    const auto check = [&](Result<void> done, bool is_right) {
        EXPECT_TRUE(!done || is_right) << "call " << number;
        return done;
    };
    switch (planned.what) {
    case 0: return group.barrier();
    case 1: {
        result = mine;
        auto done = group.broadcast(planned.root, result);
        return check(done, is_all(result, value(planned.root)));
    }
    case 2: {
        auto done = group.reduce(planned.root, mine, result, group::sum, never, planned.order);
        return check(done, rank != planned.root || is_all(result, total));
    }
    case 3: {
        auto done = group.allreduce(mine, result, group::sum, never, planned.order);
        return check(done, is_all(result, total));
    }
    case 4: {
        auto done = group.allgather(mine, all);
        bool is_right = true;
        for (std::size_t i = 0; i < all.size(); ++i) is_right &= all[i] == value(static_cast<Node>(i / planned.count));
        return check(done, is_right);
    }
    default: {
        auto done = group.scan(mine, result, group::sum, never, planned.order);
        return check(done, is_all(result, before + value(rank)));
    }
    }
}

TEST(CollectivesInOneThread, nobody_has_an_answer_before_all_have_come_that_it_is_made_of) {
    for_each_seed([](std::uint64_t seed) {
        auto options = engine_test::options_of(seed, seed % 5 == 0 ? 20 : 6);
        std::mt19937_64 random(seed);
        std::vector<std::pair<Set, Together>> calls;
        for (std::size_t i = 0; i < 40; ++i) {
            const Set set = i % 2 == 0 ? Set::range(0, options.nodes) : random_set(random, options.nodes);
            calls.emplace_back(set, any_together(random, set.size()));
            if (i % 8 == 0) calls.back().second.what = Together::barrier;
            // nothing to wait for but the root
            if (i % 8 == 2) calls.back().second.what = Together::scatter, calls.back().second.count = 0;
        }
        std::vector<Set> come(calls.size()); // to each call, so far
        OneThread world(options);
        if (seed % 2 == 0) world.part_at_random(seed + 1000);
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup());
            std::mt19937_64 own(seed * 31 + channel.self());
            for (std::size_t number = 0; number < calls.size(); ++number) {
                const auto& [set, one] = calls[number];
                if (!set.contains(channel.self())) continue;
                if (own() % 4 == 0) // late
                    for (auto polls = own() % 300; polls > 0; --polls) member.engine->poll();
                world.note(channel.self(), fmt::format("in call {} on {}: {}", number, set.text(), one.text()));
                auto group = good(member.groups->group(set));
                come[number].add(channel.self());
                EXPECT_TRUE(good(one.call(group))) << one.text() << " among " << set.text();
                for (Node rank = 0; rank < set.size(); ++rank)
                    EXPECT_TRUE(!one.needs(group.rank(), rank) || come[number].contains(set.at(rank)))
                        << one.text() << " among " << set.text() << ": node " << channel.self()
                        << " has left before node " << set.at(rank) << " has come";
            }
            settle(*member.engine);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(CollectivesInOneThread, among_any_number_of_members_give_the_root_and_all_others_what_they_are_to_have) {
    // Trees of ranks look different for each number of members and each root.
    for (Node nodes = 1; nodes <= 18; ++nodes) {
#if defined(KUMI_THREAD_SANITIZER)
        KUMI_SKIP(skips::one_thread);
#endif
        OneThread world({.nodes = nodes, .seed = nodes, .delay_max = Duration{5000}, .refusal_chance = 0});
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup());
            auto group = good(member.groups->group(Set::range(0, nodes)));
            for (int what = 0; what < Together::whats; ++what)
                for (Node root = (static_cast<Node>(what) + nodes) % 5; root < nodes; root += 5) {
                    Together one{
                        .what = static_cast<Together::What>(what), .root = root, .count = root % 4, .values = root};
                    EXPECT_TRUE(good(one.call(group))) << one.text() << " among " << nodes;
                }
            settle(*member.engine);
        });
        if (testing::Test::HasFailure()) return;
    }
}

TEST(CollectivesInOneThread, messages_are_cut_between_values) {
    struct Pair {
        Affine one, other;
    };
#if defined(KUMI_THREAD_SANITIZER)
    KUMI_SKIP(skips::one_thread);
#endif
    OneThread world({.nodes = 2, .seed = 1});
    world.run([&](Channel& channel) {
        Member member;
        member.open(channel, world.setup());
        // Half of it takes more than one message, and a message has no room for a whole number of them.
        static_assert((engine::chunk_bytes - sizeof(group::CollectiveHeader)) % sizeof(Pair) != 0);
        std::vector<Pair> values(9000);
        for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = {{i + channel.self(), 1}, {2, i}};
        const auto add = [](const Pair& a, const Pair& b) {
            return Pair{{a.one.a + b.one.a, a.one.b + b.one.b}, {a.other.a + b.other.a, a.other.b + b.other.b}};
        };
        good(good(member.groups->group({0, 1})).allreduce(values, values, add));
        for (std::uint32_t i = 0; i < values.size(); ++i) {
            ASSERT_EQ(values[i].one, (Affine{2 * i + 1, 2}));
            ASSERT_EQ(values[i].other, (Affine{4, 2 * i}));
        }
        settle(*member.engine);
    });
}

TEST(CollectivesInOneThread, collectives_are_right_though_the_network_is_parted) {
    for_each_seed([](std::uint64_t seed) {
        const auto options = options_of(seed);
        const auto plan = plan_of(seed, options.nodes, 20);
        OneThread world(options);
        world.part_at_random(seed + 1000);
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup());
            for (std::uint32_t number = 0; number < plan.size(); ++number) {
                if (!plan[number].set.contains(channel.self())) continue;
                world.note(channel.self(),
                           fmt::format("in call {}, {} on {}", number, plan[number].what, plan[number].set.text()));
                auto group = good(member.groups->group(plan[number].set));
                good(call(group, plan[number], number));
            }
            settle(*member.engine);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

/// After calls in which some members have arrived at a barrier and others have not.
void settle_without_barrier(Member& member) {
    meet(member); // a barrier would end the call of a member that is in one
    good(member.engine->sync(deadline()));
    meet(member);
}

TEST(CollectivesInOneThread, who_waits_for_a_member_that_waits_in_another_call_is_told_what_that_called) {
    for_each_seed([](std::uint64_t seed) {
        const auto options = options_of(seed);
        OneThread world(options);
        world.part_at_random(seed + 1000);
        std::mt19937_64 random(seed);
        const Set all = Set::range(0, options.nodes);
        const Node odd = static_cast<Node>(random() % options.nodes);
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup());
            auto group = good(member.groups->group(all));
            good(group.barrier());
            // All others are in an allreduce; each waits for some, and those for the one that gathers, which waits for
            // all of them.
            const std::vector<std::uint32_t> mine(10, 1);
            std::vector<std::uint32_t> result(10 * options.nodes);
            world.note(channel.self(), fmt::format("in another call than node {}", odd));
            const bool is_odd = channel.self() == odd;
            const auto done = is_odd ? group.gather(odd, mine, result)
                                     : group.allreduce(mine, std::span(result).first(10), group::sum);
            expect_error(done, {is_odd ? "gather among " : "allreduce among ", fmt::format("gather with root {}", odd),
                                " allreduce", " has called "});
            EXPECT_TRUE(done || done.error().text().find("allreduce with") == std::string::npos) << "it has no root";
            settle_without_barrier(member);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(CollectivesInOneThread, members_that_make_different_calls_are_all_told) {
    // In each of these a member waits for all others: at once, or by way of others, so that circles are of any length.
    using Call = Result<void> (*)(group::Group&, Node, const std::vector<std::uint32_t>&, std::vector<std::uint32_t>&);
    static constexpr std::array<Call, 6> calls{
        [](group::Group& group, Node, const auto&, auto&) { return group.barrier(); },
        [](group::Group& group, Node, const auto& mine, auto& all) {
            return group.allreduce(mine, std::span(all).first(mine.size()), group::sum);
        },
        [](group::Group& group, Node, const auto& mine, auto& all) { return group.allgather(mine, all); },
        [](group::Group& group, Node, const auto&, auto& all) { return group.alltoall(std::vector(all), all); },
        [](group::Group& group, Node self, const auto& mine, auto& all) { return group.gather(self, mine, all); },
        [](group::Group& group, Node self, const auto& mine, auto& all) {
            return group.reduce(self, mine, std::span(all).first(mine.size()), group::sum);
        },
    };
    engine_test::for_each_seed(400, [](std::uint64_t seed) {
        const auto options = options_of(seed);
        OneThread world(options);
        std::mt19937_64 random(seed);
        const Set all = Set::range(0, options.nodes);
        const std::size_t usual = random() % 4; // one that all can make
        std::vector<std::size_t> made(options.nodes, usual);
        for (auto odd = options.nodes == 2 ? 1 : 1 + random() % 2; odd > 0; --odd)
            made[random() % options.nodes] = (usual + 1 + random() % 5) % 6;
        const std::size_t values = random() % 3 == 0 ? 30'000 : 10; // some are asked for before they go
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup());
            auto group = good(member.groups->group(all));
            const std::vector<std::uint32_t> mine(values, 1);
            std::vector<std::uint32_t> result(values * options.nodes);
            world.note(channel.self(), fmt::format("in call {} where most make {}", made[channel.self()], usual));
            expect_error(calls[made[channel.self()]](group, channel.self(), mine, result), {" among ", " has called "});
            settle_without_barrier(member);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(CollectivesInOneThread, two_who_wait_for_each_other_as_roots_find_out_and_nothing_is_sent_by_either) {
    for_each_seed([](std::uint64_t seed) {
        OneThread world({.nodes = 2, .seed = seed});
        world.run([&](Channel& channel) {
            Member member;
            member.open(channel, world.setup());
            auto group = good(member.groups->group({0, 1}));
            const std::vector<std::uint32_t> mine(10, 1);
            std::vector<std::uint32_t> result(10);
            world.note(channel.self(), "waiting for the other one");
            expect_error(group.reduce(channel.self(), mine, result, group::sum),
                         {"reduce among 0-1: ", "reduce with root 0", "reduce with root 1",
                          fmt::format("node {}", 1 - channel.self())});
            settle(*member.engine);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed;
    });
}

TEST(CollectivesInOneThread, collectives_without_a_lost_node_are_right_and_the_others_end) {
    for_each_seed([](std::uint64_t seed) {
        auto options = options_of(seed);
        options.nodes += 2;
        const auto plan = plan_of(seed, options.nodes, 25);
        OneLoss loss(seed, options);
        const Node victim = loss.victim;
        loss.world.run([&](Channel& channel) {
            Member member;
            member.open(channel, loss.world.setup());
            for (std::uint32_t number = 0; number < plan.size(); ++number) {
                if (!plan[number].set.contains(channel.self())) continue;
                loss.world.note(channel.self(), fmt::format("in call {}, {} on {}, {} lost", number, plan[number].what,
                                                            plan[number].set.text(), victim));
                auto group = good(member.groups->group(plan[number].set));
                const auto done = call(group, plan[number], number);
                if (done || channel.self() == victim) continue;
                EXPECT_TRUE(plan[number].set.contains(victim)) << done.error().text();
                expect_error(done, {"among " + plan[number].set.text() + ": ",
                                    fmt::format("node {} has left, or is lost", victim)});
            }
            loss.stay(channel, member);
        });
        if (testing::Test::HasFailure()) FAIL() << "KUMI_SEED=" << seed << ", " << loss.text();
    });
}

} // namespace
} // namespace kumi::group_test
