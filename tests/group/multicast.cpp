// Multicasts, in every world.

#include "group/node.hpp"

#include "kumi/group/group.hpp"

#include <algorithm>
#include <numeric>

namespace kumi::group_test {
namespace {

class Multicast : public GroupTest {};

/// A member that notes what node 0 has it handle.
struct Noting {
    Member member;
    std::vector<std::uint64_t> handled;
    Handler<std::uint64_t, Bytes> note =
        member.handlers.add("note", [this](Call& call, std::uint64_t number, Bytes content) {
            EXPECT_EQ(call.source(), 0u);
            EXPECT_TRUE(is_pattern(content, number));
            handled.push_back(number);
        });

    /// Node 0 multicasts so often, to sets at random: each member has what was for it, in order. `bytes_of(number, to,
    /// random)`: how much.
    template <class BytesOf>
    void multicast_at_random(Channel& channel, std::uint64_t count, BytesOf&& bytes_of) {
        std::mt19937_64 random(seed());
        std::vector<std::uint64_t> expected;
        for (std::uint64_t number = 0; number < count; ++number) {
            const Set to = random_set(random, channel.nodes());
            const std::size_t bytes = bytes_of(number, to, random);
            if (channel.self() == 0) {
                auto done = member.groups->multicast(to, note, number, Bytes(pattern(bytes, number)));
                EXPECT_TRUE(good(done.get(deadline())).empty()) << to.text();
            }
            if (to.contains(channel.self())) expected.push_back(number);
        }
        good(member.engine->barrier(deadline()));
        EXPECT_EQ(handled, expected);
        settle(*member.engine);
    }
};

TEST_P(Multicast, reaches_every_member_of_a_set_and_nobody_else) {
    for (const Node nodes : {1u, 2u, 5u, 9u}) {
        run(nodes, [](Channel& channel) {
            Noting noting;
            noting.member.open(channel);
            noting.multicast_at_random(channel, 30, [](std::uint64_t, const Set&, std::mt19937_64& random) {
                return random_size(random, 300'000);
            });
        });
    }
}

TEST_P(Multicast, reaches_every_member_by_every_way) {
    for (std::size_t way = 0; way < group::way_names.size(); ++way) {
        SCOPED_TRACE(group::way_names[way]);
        run(7, [way](Channel& channel) {
            Noting noting;
            noting.member.open(channel, {}, {}, {}, static_cast<group::Way>(way));
            noting.multicast_at_random(channel, 10, [&](std::uint64_t number, const Set& to, std::mt19937_64& random) {
                const std::size_t bytes = number == 0 ? 3'000'000 : random_size(random, 300'000);
                EXPECT_TRUE(bytes > 100'000 ||
                            noting.member.groups->choice(bytes, to.size()).way == static_cast<group::Way>(way));
                return bytes;
            });
        });
    }
}

TEST_P(Multicast, many_of_many_masters_overlap_and_stay_in_order) {
    run(6, [](Channel& channel) {
        const std::uint64_t each = 20 * scale;
        Member member;
        std::vector<std::vector<std::uint64_t>> handled(channel.nodes());
        std::vector<std::vector<std::uint64_t>> expected(channel.nodes());
        std::size_t left = 0;
        const auto note = member.handlers.add("note", [&](Call& call, std::uint64_t number, Bytes content) {
            EXPECT_TRUE(is_pattern(content, number));
            handled[call.source()].push_back(number);
            --left;
        });
        std::vector<std::pair<Set, std::size_t>> own;
        for (Node master = 0; master < channel.nodes(); ++master) {
            std::mt19937_64 random(seed() + master);
            for (std::uint64_t number = 0; number < each; ++number) {
                Set to = random_set(random, channel.nodes());
                const std::size_t bytes = random_size(random, 60'000);
                if (to.contains(channel.self())) expected[master].push_back(number), ++left;
                if (master == channel.self()) own.emplace_back(std::move(to), bytes);
            }
        }
        member.open(channel);
        std::vector<Future<Set>> done;
        for (std::uint64_t number = 0; number < each; ++number)
            done.push_back(
                member.groups->multicast(own[number].first, note, number, Bytes(pattern(own[number].second, number))));
        for (Future<Set>& future : done) EXPECT_TRUE(good(future.get(deadline())).empty());
        EXPECT_TRUE(member.engine->wait_until([&] { return left == 0; }, deadline()));
        EXPECT_EQ(handled, expected);
        settle(*member.engine);
    });
}

TEST_P(Multicast, of_every_size_arrives_as_it_was_sent) {
    run(5, [](Channel& channel) {
        Member member;
        member.open(channel);
        std::uint64_t number = 0;
        for (const std::size_t bytes : engine_test::interesting_sizes(std::size_t{1} << (scale > 1 ? 21 : 19))) {
            const Set to = number % 2 == 0 ? Set::range(0, 5) : Set::range(1, 5);
            const auto content = pattern(bytes, number);
            auto done = channel.self() == 0 ? member.groups->multicast(to, number, content) : Future<Set>();
            if (to.contains(channel.self())) {
                const Arrival arrival = good(member.groups->next(deadline()));
                EXPECT_EQ(arrival.master, 0u);
                EXPECT_EQ(arrival.tag, number);
                EXPECT_EQ(arrival.content, content) << bytes << " bytes";
            }
            EXPECT_TRUE(channel.self() != 0 || good(done.get(deadline())).empty());
            ++number;
        }
        settle(*member.engine);
    });
}

TEST_P(Multicast, a_handler_may_begin_another_one) {
    run(4, [](Channel& channel) {
        Member member;
        std::optional<Handler<std::uint32_t>> pass;
        int handled = 0;
        pass = member.handlers.add("pass", [&](Call&, std::uint32_t rounds) {
            ++handled;
            // One of them goes on, to all.
            if (rounds > 0 && channel.self() == rounds % channel.nodes())
                (void)member.groups->multicast(Set::range(0, channel.nodes()), *pass, rounds - 1);
        });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        if (channel.self() == 2) (void)member.groups->multicast(Set::range(0, 4), *pass, 20u);
        EXPECT_TRUE(member.engine->wait_until([&] { return handled == 21; }, deadline()));
        settle(*member.engine);
    });
}

TEST_P(Multicast, a_node_that_computes_passes_it_on) {
    run(4, [](Channel& channel) {
        Member member;
        std::atomic<int> handled = 0;
        const auto count = member.handlers.add("count", [&](Call&, Bytes) { ++handled; });
        member.open(channel);
        good(member.engine->barrier(deadline()));
        if (channel.self() == 0) {
            for (int i = 0; i < 5; ++i)
                EXPECT_TRUE(good(member.groups->multicast({1, 2, 3}, count, Bytes(pattern(30'000, 1))).get(deadline()))
                                .empty());
        } else {
            while (handled < 5) std::this_thread::yield(); // without a call
        }
        settle(*member.engine);
    });
}

TEST_P(Multicast, those_who_take_one_are_a_group_of_their_own) {
    run(5, [](Channel& channel) {
        Member member;
        member.open(channel);
        for (const std::size_t bytes : {std::size_t{10}, std::size_t{200'000}}) {
            const Set first{1, 2, 4}, second{0, 1, 3, 4};
            std::vector<Future<Set>> done;
            if (channel.self() == 0)
                for (const Set& to : {first, second})
                    done.push_back(member.groups->multicast(to, to.size(), pattern(bytes, 1)));
            for (const Set& to : {first, second}) {
                if (!to.contains(channel.self())) continue;
                const Arrival arrival = good(member.groups->next(deadline()));
                EXPECT_EQ(arrival.members, to);
                group::Group group = good(member.groups->group_of(arrival));
                std::int64_t expected = 0;
                for (const Node node : to) expected += node;
                EXPECT_EQ(good(group.allreduce(std::int64_t{channel.self()}, group::sum)), expected);
            }
            for (Future<Set>& future : done) EXPECT_TRUE(good(future.get(deadline())).empty());
        }
        settle(*member.engine);
    });
}

TEST_P(Multicast, gathers_what_a_function_answers_on_each_member) {
    run(6, [](Channel& channel) {
        Member member;
        const auto square = member.handlers.function(
            "square", [&](std::int64_t number) { return fmt::format("{}*{}", channel.self(), number); });
        const auto fail = member.handlers.function("fail", [&](int) -> int {
            if (channel.self() == 4) throw std::runtime_error("no");
            return 1;
        });
        member.open(channel);
        std::mt19937_64 random(seed() + channel.self());
        for (std::int64_t round = 0; round < 10; ++round) {
            const Set to = random_set(random, channel.nodes());
            const auto answers = good(member.groups->gather(to, square, round).get(deadline()));
            ASSERT_EQ(answers.size(), to.size());
            for (Node rank = 0; rank < to.size(); ++rank) {
                EXPECT_EQ(answers[rank].first, to.at(rank));
                EXPECT_EQ(answers[rank].second, fmt::format("{}*{}", to.at(rank), round));
            }
        }
        expect_error(member.groups->gather({1, 2, 4}, fail, 0).get(deadline()),
                     {"multicast to 1-2,4", "node 4", "fail", "no"});
        good(member.engine->barrier(deadline()));
        settle(*member.engine);
    });
}

/// So many bytes that differ by node and round.
std::vector<std::byte> answer_of_node(Node node, std::size_t bytes, std::uint64_t round) {
    return pattern(bytes, node * 1000 + round);
}

TEST_P(Multicast, gathers_answers_of_any_size) {
    run(4, [](Channel& channel) {
        Member member;
        // The size is that of node 0; other nodes answer some more.
        const auto answer = member.handlers.function("answer", [&](std::uint64_t bytes, std::uint64_t round) {
            return answer_of_node(channel.self(), bytes + channel.self(), round);
        });
        member.open(channel);
        std::mt19937_64 random(seed() + channel.self());
        const auto gather = [&](const Set& to, std::uint64_t bytes, std::uint64_t round) {
            return [to, bytes, round, future = std::make_shared<Future<group::Gathered<std::vector<std::byte>>>>(
                                          member.groups->gather(to, answer, bytes, round))] {
                const auto answers = good(future->get(deadline()));
                ASSERT_EQ(answers.size(), to.size());
                for (Node rank = 0; rank < to.size(); ++rank) {
                    EXPECT_EQ(answers[rank].first, to.at(rank));
                    const std::size_t size = bytes + to.at(rank);
                    EXPECT_TRUE(answers[rank].second == answer_of_node(to.at(rank), size, round)) << size;
                }
            };
        };
        std::uint64_t round = 0;
        // Around what comes at once: half of a message, divided among the members.
        for (const std::uint64_t bytes : {32'750u, 130'000u, 262'144u, 1'000'000u}) {
            gather(Set::range(0, 4), bytes, ++round)();
            gather({1}, bytes, ++round)();
            const auto first = gather(random_set(random, channel.nodes()), bytes, ++round);
            const auto second = gather(random_set(random, channel.nodes()), random() % (2 * bytes), ++round);
            second();
            first();
        }
        good(member.engine->barrier(deadline()));
        settle(*member.engine);
        EXPECT_EQ(member.groups->kept(), 0u);
    });
}

TEST_P(Multicast, reduces_what_a_function_answers_on_each_member) {
    run(7, [](Channel& channel) {
        Member member;
        const auto cube = member.handlers.function(
            "cube", [&](std::int64_t number) { return number * channel.self() * channel.self(); });
        const auto add = member.handlers.function("add", [](std::int64_t a, std::int64_t b) { return a + b; });
        member.open(channel);
        std::mt19937_64 random(seed() + channel.self());
        for (std::int64_t round = 0; round < 20; ++round) {
            const Set to = random_set(random, channel.nodes());
            std::int64_t expected = 0;
            for (const Node node : to) expected += round * node * node;
            const auto reduced = good(member.groups->reduce(to, add, cube, round).get(deadline()));
            EXPECT_EQ(reduced.value, expected) << to.text();
            EXPECT_TRUE(reduced.missing.empty());
        }
        good(member.engine->barrier(deadline()));
        settle(*member.engine);
    });
}

KUMI_ENGINE_WORLDS(Multicast);

} // namespace
} // namespace kumi::group_test
