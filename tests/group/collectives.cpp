// What members of a set do together, in every world, against a plain computation of the same.

#include "group/node.hpp"
#include "group/together.hpp"

#include "kumi/group/mail/mailbox.hpp"
#include "kumi/group/group.hpp"

#include <algorithm>
#include <numeric>

namespace kumi::group_test {
namespace {

using group::Group;
using group::Order;

class Collectives : public GroupTest {};

/// 2 x 2 numbers: their product depends on the order.
struct Matrix {
    std::uint32_t a, b, c, d;
    friend bool operator==(const Matrix&, const Matrix&) = default;
};
constexpr auto times = [](const Matrix& x, const Matrix& y) {
    return Matrix{x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
};

/// What a member has in a round; any other member can tell too.
template <class T>
std::vector<T> values_of(std::uint64_t round, Node rank, std::size_t count) {
    std::mt19937_64 random(seed() * 31 + round * 1009 + rank);
    std::vector<T> values(count);
    for (T& value : values) {
        if constexpr (std::is_same_v<T, Matrix>)
            value = {static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random()), 1,
                     static_cast<std::uint32_t>(random())};
        else value = static_cast<T>(random() % 1000);
    }
    return values;
}

template <class T, class Operation>
std::vector<T> folded(std::uint64_t round, Node begin, Node end, std::size_t count, const Operation& operation) {
    auto all = values_of<T>(round, begin, count);
    for (Node rank = begin + 1; rank < end; ++rank) {
        const auto more = values_of<T>(round, rank, count);
        for (std::size_t i = 0; i < count; ++i) all[i] = operation(all[i], more[i]);
    }
    return all;
}

/// Small ones mostly.
std::size_t random_count(std::mt19937_64& random) {
    switch (random() % 8) {
    case 0: return 0;
    case 1: return random() % 20'000;
    case 2: return random() % 3000;
    default: return random() % 20;
    }
}

/// One random collective, the same at all members, compared with what it must answer.
template <class T, class Operation>
void try_reductions(Group& group, std::uint64_t round, std::mt19937_64& random, const Operation& operation) {
    const std::size_t count = random_count(random);
    const auto root = static_cast<Node>(random() % group.size());
    const Order order = random() % 3 == 0 ? Order::by_rank : Order::tree;
    const auto mine = values_of<T>(round, group.rank(), count);
    std::vector<T> result(count);
    switch (random() % 5) {
    case 0:
        good(group.reduce(root, mine, result, operation, deadline(), order));
        if (group.rank() == root) {
            EXPECT_EQ(result, folded<T>(round, 0, group.size(), count, operation)) << "reduce of " << count;
        }
        break;
    case 1:
        good(group.allreduce(mine, result, operation, deadline(), order));
        EXPECT_EQ(result, folded<T>(round, 0, group.size(), count, operation)) << "allreduce of " << count;
        break;
    case 2:
        result = mine;
        good(group.allreduce(result, result, operation, deadline(), order));
        EXPECT_EQ(result, folded<T>(round, 0, group.size(), count, operation)) << "allreduce in place of " << count;
        break;
    case 3:
        good(group.scan(mine, result, operation, deadline(), order));
        EXPECT_EQ(result, folded<T>(round, 0, group.rank() + 1, count, operation)) << "scan of " << count;
        break;
    case 4:
        result = values_of<T>(round, 1000, count);
        good(group.exclusive_scan(mine, result, operation, deadline(), order));
        EXPECT_EQ(result, group.rank() == 0 ? values_of<T>(round, 1000, count)
                                            : folded<T>(round, 0, group.rank(), count, operation))
            << "exclusive scan of " << count;
        break;
    }
}

void try_any_operation(Group& group, std::uint64_t round, std::mt19937_64& random) {
    switch (random() % 9) {
    case 0: return try_reductions<std::int64_t>(group, round, random, group::sum);
    case 1: return try_reductions<std::uint32_t>(group, round, random, group::product);
    case 2: return try_reductions<std::int16_t>(group, round, random, group::min);
    case 3: return try_reductions<float>(group, round, random, group::max);
    case 4: return try_reductions<std::uint8_t>(group, round, random, group::bit_and);
    case 5: return try_reductions<std::uint64_t>(group, round, random, group::bit_or);
    case 6: return try_reductions<std::uint16_t>(group, round, random, group::bit_xor);
    case 7: return try_reductions<double>(group, round, random, group::sum); // whole numbers: exact in any order
    default: return try_reductions<Matrix>(group, round, random, times);
    }
}

void try_moves(Group& group, std::uint64_t round, std::mt19937_64& random) {
    using T = std::uint16_t;
    const std::size_t count = random_count(random) / 4;
    const auto root = static_cast<Node>(random() % group.size());
    const auto mine = values_of<T>(round, group.rank(), count);
    std::vector<T> every;
    for (Node rank = 0; rank < group.size(); ++rank) {
        const auto values = values_of<T>(round, rank, count);
        every.insert(every.end(), values.begin(), values.end());
    }
    std::vector<T> all(count * group.size());
    switch (random() % 6) {
    case 0: {
        std::vector<T> values = group.rank() == root ? values_of<T>(round, root, count * 8) : std::vector<T>(count * 8);
        good(group.broadcast(root, values, deadline()));
        EXPECT_EQ(values, values_of<T>(round, root, count * 8)) << "broadcast of " << count * 8;
        break;
    }
    case 1:
        good(group.gather(root, mine, all, deadline()));
        if (group.rank() == root) { EXPECT_EQ(all, every) << "gather of " << count; }
        break;
    case 2: {
        std::vector<T> part(count);
        good(group.scatter(root, group.rank() == root ? every : std::vector<T>{}, part, deadline()));
        EXPECT_EQ(part, mine) << "scatter of " << count;
        break;
    }
    case 3:
        good(group.allgather(mine, all, deadline()));
        EXPECT_EQ(all, every) << "allgather of " << count;
        break;
    case 4: {
        // To rank r goes this member's value plus r.
        std::vector<T> send, expected;
        for (Node rank = 0; rank < group.size(); ++rank)
            for (std::size_t i = 0; i < count; ++i)
                send.push_back(static_cast<T>(mine[i] + rank)),
                    expected.push_back(static_cast<T>(every[rank * count + i] + group.rank()));
        good(group.alltoall(send, all, deadline()));
        EXPECT_EQ(all, expected) << "alltoall of " << count;
        break;
    }
    case 5: good(group.barrier(deadline())); break;
    }
}

void try_different_sizes(Group& group, std::uint64_t round, std::mt19937_64& random) {
    using T = std::uint32_t;
    std::vector<std::size_t> counts(group.size());
    for (std::size_t& count : counts) count = random_count(random) / 2;
    const auto root = static_cast<Node>(random() % group.size());
    const auto mine = values_of<T>(round, group.rank(), counts[group.rank()]);
    std::vector<std::vector<T>> every;
    for (Node rank = 0; rank < group.size(); ++rank) every.push_back(values_of<T>(round, rank, counts[rank]));
    switch (random() % 4) {
    case 0:
        EXPECT_EQ(good(group.gatherv(root, mine, deadline())),
                  group.rank() == root ? every : std::vector<std::vector<T>>{});
        break;
    case 1: EXPECT_EQ(good(group.allgatherv(mine, deadline())), every); break;
    case 2:
        EXPECT_EQ(good(group.scatterv(root, group.rank() == root ? every : std::vector<std::vector<T>>{}, deadline())),
                  mine);
        break;
    case 3: {
        // To rank r goes a beginning of this member's values, of a length that both can tell.
        const auto part = [&](Node from, Node to) {
            return std::span<const T>(every[from]).first(counts[from] / (1 + (from + to) % 3));
        };
        std::vector<std::span<const T>> parts;
        for (Node rank = 0; rank < group.size(); ++rank) parts.push_back(part(group.rank(), rank));
        const auto received = good(group.alltoallv(parts, deadline()));
        ASSERT_EQ(received.size(), group.size());
        for (Node rank = 0; rank < group.size(); ++rank)
            EXPECT_TRUE(std::ranges::equal(received[rank], part(rank, group.rank())));
        break;
    }
    }
}

TEST_P(Collectives, of_random_sets_answer_what_a_plain_computation_does) {
    for (const Node nodes : {1u, 2u, 5u, 9u}) {
        run(nodes, [](Channel& channel) {
            Member member;
            member.open(channel);
            std::mt19937_64 random(seed());
            for (std::uint64_t round = 0; round < 25; ++round) {
                const Set set = random_set(random, channel.nodes());
                const std::uint64_t choice = random();
                if (!set.contains(channel.self())) continue;
                Group group = good(member.groups->group(set));
                EXPECT_EQ(group.set().at(group.rank()), channel.self());
                std::mt19937_64 own(choice);
                for (int i = 0; i < 2; ++i) {
                    switch (own() % 4) {
                    case 0: try_moves(group, round * 2 + static_cast<std::uint64_t>(i), own); break;
                    case 1: try_different_sizes(group, round * 2 + static_cast<std::uint64_t>(i), own); break;
                    default: try_any_operation(group, round * 2 + static_cast<std::uint64_t>(i), own); break;
                    }
                }
            }
            settle(*member.engine);
        });
    }
}

/// When a member came to a call, and when it left: all nodes of these tests have the clock of one machine.
struct Stay {
    std::int64_t come, left;
};

TEST_P(Collectives, nobody_has_an_answer_before_all_have_come_that_it_is_made_of) {
    for (const Node nodes : {2u, 3u, 5u}) {
        run(nodes, [](Channel& channel) {
            const Node nodes = channel.nodes(), self = channel.self();
            Member member;
            std::vector<std::vector<Stay>> stays(nodes); // by node, by round; node 0 hears of all
            std::size_t told = 0;
            const auto tell = member.handlers.add("tell", [&](Call& call, Bytes bytes) {
                stays[call.source()].resize(bytes.size() / sizeof(Stay));
                copy_bytes(std::as_writable_bytes(std::span(stays[call.source()])).data(), bytes);
                ++told;
            });
            member.open(channel);
            Group group = good(member.groups->group(Set::range(0, nodes)));
            std::mt19937_64 random(seed()); // the same at all
            std::vector<Together> calls;
            std::vector<Stay> own;
            // Every other call is a barrier. In each one comes late, when the others are there.
            for (int round = 0; round < 2 * Together::whats; ++round) {
                Together one = any_together(random, nodes);
                one.count = 1 + one.count % 20;
                one.what = round % 2 == 0 ? Together::barrier : static_cast<Together::What>(round / 2);
                const auto late = static_cast<Node>(random() % nodes);
                good(member.engine->barrier(deadline()));
                if (self == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                Stay stay{now().time_since_epoch().count(), 0};
                EXPECT_TRUE(good(one.call(group, deadline()))) << one.text();
                stay.left = now().time_since_epoch().count();
                calls.push_back(one);
                own.push_back(stay);
            }
            good(member.engine->send(0, tell, std::as_bytes(std::span(own))));
            if (self == 0) {
                ASSERT_TRUE(member.engine->wait_until([&] { return told == nodes; }, deadline()));
                for (std::size_t round = 0; round < calls.size(); ++round)
                    for (Node to = 0; to < nodes; ++to)
                        for (Node from = 0; from < nodes; ++from) {
                            if (!calls[round].needs(to, from)) continue;
                            ASSERT_GE(stays[to][round].left, stays[from][round].come)
                                << calls[round].text() << ": rank " << to << " has left before rank " << from
                                << " has come";
                        }
            }
            settle(*member.engine);
        });
    }
}

TEST_P(Collectives, of_large_arrays_answer_the_same) {
    run(5, [](Channel& channel) {
        Member member;
        member.open(channel);
        const std::size_t count = scale > 1 ? 60'001 : 20'001;
        for (const Set& set : {Set{0, 1, 2, 3}, Set{0, 2, 4}}) {
            if (!set.contains(channel.self())) continue;
            Group group = good(member.groups->group(set));
            std::vector<double> values = values_of<double>(1, group.rank(), count);
            good(group.allreduce(values, values, group::sum, deadline()));
            EXPECT_EQ(values, folded<double>(1, 0, group.size(), count, group::sum));
            good(group.reduce(1, values, values, group::max, deadline()));
            EXPECT_EQ(values, folded<double>(1, 0, group.size(), count, group::sum));
            if (group.rank() == 2) values = values_of<double>(2, 2, count);
            good(group.broadcast(2, values, deadline()));
            EXPECT_EQ(values, values_of<double>(2, 2, count));
        }
        settle(*member.engine);
    });
}

TEST_P(Collectives, of_values_larger_than_a_message_are_combined_whole) {
    struct Large {
        std::array<std::uint32_t, 20'000> numbers;
    };
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group({0, 1, 2}));
        auto mine = std::make_unique<std::array<Large, 2>>();
        for (Large& large : *mine)
            for (std::uint32_t i = 0; i < large.numbers.size(); ++i) large.numbers[i] = i + channel.self();
        const auto concatenate = [](const Large& a, const Large& b) {
            Large both = a;
            for (std::size_t i = 0; i < both.numbers.size(); ++i) both.numbers[i] = a.numbers[i] * 10 + b.numbers[i];
            return both;
        };
        good(group.allreduce(*mine, *mine, concatenate, deadline()));
        for (std::uint32_t i = 0; i < 20'000; ++i) ASSERT_EQ((*mine)[1].numbers[i], (i * 10 + i + 1) * 10 + i + 2);
        settle(*member.engine);
    });
}

TEST_P(Collectives, of_one_value_need_no_array) {
    run(3, [](Channel& channel) {
        Member member;
        member.open(channel);
        Group group = good(member.groups->group({0, 1, 2}));
        EXPECT_EQ(good(group.allreduce(1.5 + channel.self(), group::sum, deadline())), 7.5);
        EXPECT_EQ(good(group.allreduce(Matrix{channel.self(), 1, 1, 0}, times, deadline())),
                  times(times(Matrix{0, 1, 1, 0}, Matrix{1, 1, 1, 0}), Matrix{2, 1, 1, 0}));
        settle(*member.engine);
    });
}

TEST_P(Collectives, on_sets_that_cross_go_in_any_order_that_does_not_wait_in_a_circle) {
    run(4, [](Channel& channel) {
        Member member;
        member.open(channel);
        const Node self = channel.self();
        for (std::uint64_t round = 0; round < 20; ++round) {
            // Node 0 gives to both sets, and node 1 takes from them in the other order.
            const auto take = [&](const Set& set, std::uint64_t number) {
                std::uint64_t value = self == 0 ? number : 0;
                good(good(member.groups->group(set)).broadcast(0, std::span(&value, 1), deadline()));
                EXPECT_EQ(value, number);
            };
            const Set first{0, 1, 2}, second{0, 1, 3};
            if (self == 0) take(first, round), take(second, round + 100);
            else if (self == 1) take(second, round + 100), take(first, round);
            else take(self == 2 ? first : second, self == 2 ? round : round + 100);
        }
        settle(*member.engine);
    });
}

KUMI_ENGINE_WORLDS(Collectives);

} // namespace
} // namespace kumi::group_test
