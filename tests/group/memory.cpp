// Multicasts into memory, in every world.

#include "group/node.hpp"

#include "engine/random_memory.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace kumi::group_test {
namespace {

using namespace std::chrono_literals;

class MulticastIntoMemory : public GroupTest {};

/// A member, and its memory.
struct Storing {
    Member member;
    Set all;

    explicit Storing(Channel& channel) : all(Set::range(0, channel.nodes())) { member.open(channel); }
    engine::Engine& engine() { return *member.engine; }
    engine::Memory memory() { return member.engine->memory(); }
    Groups& groups() { return *member.groups; }
};

TEST_P(MulticastIntoMemory, reaches_all_nodes_from_any_of_them) {
    for (const Node nodes : {1u, 2u, 5u, 9u}) {
        run(nodes, [](Channel& channel) {
            Storing node(channel);
            const auto memory = good(node.memory().segment<std::byte>(200'000));
            const auto flags = good(node.memory().segment<Flag>(1));
            Flag round = 0;
            for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{200'000}})
                for (Node root = 0; root < channel.nodes();
                     root += root == 0 || root + 2 >= channel.nodes() ? 1 : channel.nodes() - 2) {
                    ++round;
                    Future<Set> done;
                    if (channel.self() == root) // what is sent may go when the call returns
                        done = node.groups().multicast(node.all, memory.at(root), pattern(bytes, round),
                                                       Notice::set(flags.at(root), round));
                    good(node.memory().wait(flags[0], round, deadline()));
                    EXPECT_TRUE(is_pattern(memory.local().first(bytes), round)) << bytes << " bytes from node " << root;
                    if (channel.self() == root) {
                        EXPECT_TRUE(good(done.get(deadline())).empty());
                    }
                    settle(node.engine());
                }
        });
    }
}

TEST_P(MulticastIntoMemory, reaches_the_members_of_a_set_and_nobody_else) {
    run(5, [](Channel& channel) {
        Storing node(channel);
        std::mt19937_64 random(seed()); // the same on all nodes
        const auto memory = good(node.memory().segment<std::uint64_t>(20'000));
        for (std::uint64_t round = 1; round <= 20; ++round) {
            const Set to = random_set(random, channel.nodes());
            const std::size_t count = random_size(random, memory.size());
            if (channel.self() == round % 5) {
                const std::vector<std::uint64_t> values(count, round);
                EXPECT_TRUE(good(node.groups().multicast(to, memory.at(0), values).get(deadline())).empty());
            }
            good(node.engine().barrier());
            if (count != 0) {
                EXPECT_EQ(memory[0] == round, to.contains(channel.self())) << to.text();
                EXPECT_EQ(memory[count - 1] == round, to.contains(channel.self())) << to.text();
            }
            EXPECT_TRUE(count == memory.size() || memory[count] != round) << "beyond its end";
            good(node.engine().barrier());
        }
    });
}

TEST_P(MulticastIntoMemory, many_of_many_roots_may_be_under_way_at_once) {
    run(5, [](Channel& channel) {
        Storing node(channel);
        constexpr std::size_t bytes = 3000, each = 20;
        const auto memory = good(node.memory().segment<std::byte>(5 * each * bytes));
        const auto counters = good(node.memory().segment<Counter>(1));
        std::vector<Future<Set>> begun;
        for (std::size_t i = 0; i < each; ++i) {
            const std::size_t number = channel.self() * each + i;
            begun.push_back(node.groups().multicast(node.all, memory.at(0, number * bytes), pattern(bytes, number),
                                                    Notice::count(counters.at(0))));
        }
        node.memory().expect(counters[0], 5 * each);
        good(node.memory().wait(counters[0].flag, 1, deadline()));
        for (std::size_t i = 0; i < 5 * each; ++i)
            EXPECT_TRUE(is_pattern(memory.local().subspan(i * bytes, bytes), i)) << i;
        for (auto& one : begun) EXPECT_TRUE(good(one.get(deadline())).empty());
        settle(node.engine());
    });
}

TEST_P(MulticastIntoMemory, a_place_that_is_nowhere_is_refused) {
    run(3, [](Channel& channel) {
        Storing node(channel);
        const auto memory = good(node.memory().segment<std::byte>(100));
        const auto heap = good(node.memory().allocate<std::byte>(100));
        if (channel.self() == 0) {
            Groups& groups = node.groups();
            const std::vector<std::byte> content(200);
            const Bytes little = Bytes(content).first(8);
            expect_error(groups.multicast(node.all, memory.at(0), content).get(deadline()), {"segment", "200"});
            expect_error(groups.multicast(node.all, memory.at(0, 93), little).get(deadline()), {"segment"});
            expect_error(groups.multicast(node.all, heap, little).get(deadline()), {"heap"});
            const auto no_flag = Notice::set({0, memory.id(), 96});
            expect_error(groups.multicast(node.all, memory.at(0), little, no_flag).get(deadline()), {"flag"});
            expect_error(groups.multicast({}, memory.at(0), little).get(deadline()), {"empty"});
            expect_error(groups.multicast({7}, memory.at(0), little).get(deadline()), {"node 7"});
            good(node.engine().sync(deadline())); // errors are the future's, and nothing is under way
        }
        good(node.engine().barrier());
        EXPECT_TRUE(std::ranges::all_of(memory.local(), [](std::byte byte) { return byte == std::byte{0}; }));
        good(node.engine().barrier());
    });
}

TEST_P(MulticastIntoMemory, a_handler_may_begin_one_and_what_came_before_is_there_first) {
    run(4, [](Channel& channel) {
        Member member;
        const auto segment = std::make_shared<Segment<std::uint64_t>>();
        const auto stored = std::make_shared<Future<Set>>();
        std::atomic<int> seen{0};
        const auto begin = member.handlers.add("begin", [&](Call&, std::uint64_t value) {
            *stored = member.groups->multicast(Set::range(0, 4), segment->at(0), {&value, 1});
        });
        const auto look = member.handlers.add("look", [&](Call&, std::uint64_t expected) {
            EXPECT_EQ((*segment)[1], expected); // a multicast of the same master, stored before
            ++seen;
        });
        member.open(channel);
        *segment = good(member.engine->memory().segment<std::uint64_t>(2));
        good(member.engine->barrier(deadline())); // handlers find it
        if (channel.self() == 1) {
            good(member.engine->send(2, begin, std::uint64_t{77}));
            for (std::uint64_t value = 1; value <= 20; ++value) {
                auto first = member.groups->multicast(Set::range(0, 4), segment->at(0, 1), {&value, 1});
                EXPECT_TRUE(good(member.groups->multicast(Set::range(0, 4), look, value).get(deadline())).empty());
                EXPECT_TRUE(good(first.get(deadline())).empty());
            }
        }
        EXPECT_TRUE(member.engine->wait_until([&] { return seen == 20; }, deadline()));
        if (channel.self() == 2) {
            EXPECT_TRUE(member.engine->wait_until([&] { return stored->is_ready(); }, deadline()));
            EXPECT_TRUE(good(stored->get()).empty());
        }
        settle(*member.engine);
        EXPECT_EQ((*segment)[0], 77u);
        good(member.engine->barrier(deadline()));
    });
}

TEST_P(MulticastIntoMemory, brings_values_from_the_memory_of_any_node) {
    run(5, [](Channel& channel) {
        Storing node(channel);
        constexpr std::size_t largest = 200'000;
        const auto memory = good(node.memory().segment<std::byte>(largest));
        const auto source = good(node.memory().segment<std::byte>(largest));
        const auto flags = good(node.memory().segment<Flag>(1));
        std::vector<std::byte> own(largest);
        const auto exposed = exchange(node.engine(), good(node.memory().expose(own)));
        Flag round = 0;
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, largest})
            for (const Node from : {0u, 1u, 2u, 4u})
                for (const bool is_exposed : {false, true}) {
                    ++round;
                    engine_test::fill_pattern(is_exposed ? own : source.local(), round + channel.self());
                    good(node.engine().barrier(deadline()));
                    if (channel.self() == 1) {
                        const auto values = is_exposed ? exposed[from] : source.at(from);
                        auto done = node.groups().multicast({0, 1, 3, 4}, memory.at(0), values, bytes,
                                                            Notice::set(flags.at(0), round));
                        if (round % 2 == 0) good(node.engine().sync(deadline())); // waits for the stores, too
                        EXPECT_TRUE(round % 2 != 0 || done.is_ready());
                        EXPECT_TRUE(good(done.get(deadline())).empty());
                    }
                    if (channel.self() != 2) {
                        good(node.memory().wait(flags[0], round, deadline()));
                        EXPECT_TRUE(is_pattern(memory.local().first(bytes), round + from)) << bytes << " of " << from;
                    }
                    good(node.engine().barrier(deadline()));
                }
        EXPECT_EQ(flags[0] == 0, channel.self() == 2) << "no member";
        good(node.memory().conceal(exposed[channel.self()]));
        good(node.engine().barrier(deadline()));
    });
}

TEST_P(MulticastIntoMemory, goes_to_a_place_of_its_own_on_each_node) {
    run(4, [](Channel& channel) {
        Storing node(channel);
        constexpr std::size_t largest = 100'000;
        std::vector<std::byte> own(largest + 10);
        const auto segment = good(node.memory().segment<std::byte>(largest + 100));
        const auto counters = good(node.memory().segment<Counter>(1));
        const auto heap = good(node.memory().allocate<std::byte>(largest + 1000 * channel.self()));
        const auto exposed = exchange(node.engine(), good(node.memory().expose(own)));
        const auto heaps = exchange(node.engine(), heap + 100 * channel.self());
        const std::byte* here[] = {own.data() + 10, segment.local().data() + 33, own.data(),
                                   node.memory().local(heaps[channel.self()])};
        const std::vector<global_ptr<std::byte>> places{heaps[3], exposed[2], segment.at(1, 33), exposed[0] + 10};
        std::int64_t round = 0;
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, std::size_t{3000}, largest}) {
            ++round;
            if (channel.self() == 2) {
                const auto notice = Notice::count(counters.at(0));
                EXPECT_TRUE(good(node.groups().multicast(places, pattern(bytes, 2), notice).get(deadline())).empty());
            }
            settle(node.engine());
            EXPECT_TRUE(is_pattern({here[channel.self()], bytes}, 2)) << bytes << " bytes";
            EXPECT_EQ(counters[0].missing, -round);
            good(node.engine().barrier(deadline()));
            // from the memory of a node, too, which is a member itself, and what it had is what all have
            if (channel.self() == 3) engine_test::fill_pattern(own, 100 + bytes);
            good(node.engine().barrier(deadline()));
            if (channel.self() == 0) {
                EXPECT_TRUE(good(node.groups().multicast(places, exposed[3], bytes).get(deadline())).empty());
            }
            settle(node.engine());
            EXPECT_TRUE(is_pattern({here[channel.self()], bytes}, 100 + bytes)) << bytes << " bytes";
            good(node.engine().barrier(deadline()));
        }
        good(node.memory().conceal(exposed[channel.self()]));
        good(node.engine().barrier(deadline()));
    });
}

TEST_P(MulticastIntoMemory, many_nodes_may_ask_one_for_more_than_it_has_under_way) {
    run(3, [](Channel& channel) {
        Storing node(channel);
        const auto count = static_cast<std::size_t>(100 * scale);
        std::vector<std::uint64_t> own(count);
        for (std::size_t i = 0; i < count; ++i) own[i] = 1000 * channel.self() + i;
        const auto memory = good(node.memory().segment<std::uint64_t>(3 * count));
        const auto list = exchange(node.engine(), good(node.memory().expose(own)).as<std::byte>());
        std::vector<Future<Set>> begun;
        for (std::size_t i = 0; i < count; ++i)
            begun.push_back(node.groups().multicast(node.all, memory.at(0, channel.self() * count + i),
                                                    list[0].as<std::uint64_t>() + static_cast<std::ptrdiff_t>(i), 1));
        for (auto& one : begun) EXPECT_TRUE(good(one.get(deadline())).empty());
        settle(node.engine());
        for (std::size_t i = 0; i < 3 * count; ++i) EXPECT_EQ(memory[i], i % count) << i;
        good(node.engine().barrier(deadline()));
    });
}

TEST_P(MulticastIntoMemory, from_or_to_memory_that_is_not_there_is_refused) {
    run(3, [](Channel& channel) {
        Storing node(channel);
        std::vector<std::byte> own(100);
        const auto memory = good(node.memory().segment<std::byte>(100));
        const auto exposed = exchange(node.engine(), good(node.memory().expose(own)));
        if (channel.self() == 2) good(node.memory().conceal(exposed[2]));
        good(node.engine().barrier(deadline()));
        if (channel.self() == 0) {
            Groups& groups = node.groups();
            const std::vector<std::byte> little(8);
            const auto ask = [&](global_ptr<std::byte> from, std::size_t bytes) {
                return groups.multicast(node.all, memory.at(0), from, bytes).get(deadline());
            };
            expect_code(ask(exposed[2], 8), ErrorCode::not_found, {"node 2", "not exposed (any more)"});
            expect_code(ask(exposed[1] + 93, 8), ErrorCode::not_found, {"100 bytes are exposed", "8 at 93"});
            expect_code(ask(exposed[1], 101), ErrorCode::not_found, {"segment"});
            expect_code(ask(memory.at(1, 93), 8), ErrorCode::not_found, {"segment"});
            expect_code(ask({}, 8), ErrorCode::not_found, {"null"});
            expect_code(groups.multicast({0, 7}, memory.at(0), exposed[1], 8).get(deadline()), ErrorCode::not_found,
                        {"no node 7"});
            expect_code(groups.multicast({}, memory.at(0), exposed[1], 8).get(deadline()), ErrorCode::misuse,
                        {"empty set"});
            expect_code(ask({7, memory.id(), 0}, 8), ErrorCode::not_found, {"no node 7"});
            const auto store = [&](std::vector<global_ptr<std::byte>> places, const Notice& notice = {}) {
                return groups.multicast(places, little, notice).get(deadline());
            };
            expect_code(store({exposed[0], exposed[2], exposed[1]}), ErrorCode::not_found, {"node 2", "not exposed"});
            EXPECT_EQ(own[0], std::byte{0});
            expect_code(store({exposed[1], memory.at(1)}), ErrorCode::misuse, {"two of the places", "node 1"});
            expect_code(store({exposed[1], {}}), ErrorCode::not_found, {"null"});
            expect_code(store({}), ErrorCode::misuse, {"empty"});
            expect_code(store({exposed[1]}, Notice::set(exposed[1].as<Flag>())), ErrorCode::misuse, {"flag"});
            expect_code(groups.multicast(node.all, exposed[0], little).get(deadline()), ErrorCode::misuse,
                        {"a place for each node"});
            good(node.engine().sync(deadline())); // errors are the futures'
        }
        good(node.engine().barrier(deadline()));
        if (channel.self() != 2) good(node.memory().conceal(exposed[channel.self()]));
        good(node.engine().barrier(deadline()));
    });
}

TEST_P(MulticastIntoMemory, from_the_memory_of_a_node_that_has_left_fails) {
    run(3, [](Channel& channel) {
        Storing node(channel);
        const auto memory = good(node.memory().segment<std::byte>(100));
        const auto source = good(node.memory().segment<std::byte>(100)); // which nobody changes
        good(node.engine().barrier(deadline()));
        if (channel.self() == 2) return;
        const auto ask = [&] {
            return node.groups().multicast({0, 1}, memory.at(0), source.at(2), 100).get(deadline());
        };
        auto asked = ask();
        for (const Instant end = deadline(); asked && now() < end;) asked = ask(); // it is about to leave
        expect_code(asked, ErrorCode::node_lost, {"node 2"});
        (void)node.engine().sync(deadline()).has_value();
        good(node.groups().multicast({0, 1}, memory.at(0), source.at(1 - channel.self()), 100).get(deadline()));
        good(good(node.groups().group({0, 1})).barrier(deadline())); // or the other node could leave before
    });
}

/// All that had to be done between them is done: that they have left is no error, and nothing to wait for.
TEST_P(MulticastIntoMemory, who_leaves_after_a_barrier_is_not_missed) {
    run(4, [](Channel& channel) {
        Storing node(channel);
        const auto memory = good(node.memory().segment<std::byte>(1000));
        if (channel.self() == 0) {
            const auto content = pattern(250, 1);
            EXPECT_TRUE(good(node.groups().multicast(node.all, memory.at(0), content).get(deadline())).empty());
            good(node.engine().sync(deadline()));
        }
        good(node.engine().barrier(deadline()));
        if (channel.self() != 1) return;
        std::this_thread::sleep_for(30ms);
        good(node.engine().sync(deadline()));
        good(node.memory().write(memory.here(), std::byte{1})); // it goes on, alone
        good(node.engine().sync(deadline()));
    });
}

TEST_P(MulticastIntoMemory, among_random_operations_does_what_a_model_says) {
    run(4, [](Channel& channel) {
        Storing node(channel);
        std::mt19937_64 random(seed() + channel.self());
        engine_test::RandomMemory memory(node.engine(), random, [&](global_ptr<std::byte> place, Bytes content) {
            (void)node.groups().multicast(node.all, place, content);
        });
        for (int step = 0; step < 60 * scale; ++step) memory.step();
        memory.finish();
    });
}

KUMI_ENGINE_WORLDS(MulticastIntoMemory);

} // namespace
} // namespace kumi::group_test
