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
