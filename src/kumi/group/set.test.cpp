#include "kumi/group/set.hpp"

#include "simulation/seeds.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>

namespace kumi::group {
namespace {

using Random = std::mt19937_64;

/// Few or many, together or far apart, at the start or later.
std::set<Node> random_members(Random& random, Node nodes) {
    const Node begin = static_cast<Node>(random() % nodes);
    const Node span = 1 + static_cast<Node>(random() % std::min<Node>(nodes - begin, random() % 2 == 0 ? 20 : 4'000));
    const Node one_in = random() % 3 == 0 ? 1 : 1 + static_cast<Node>(random() % 30);
    const bool steps = random() % 4 == 0;
    std::set<Node> members;
    for (Node i = 0; i < span; ++i)
        if (steps ? i % one_in == 0 : random() % one_in == 0) members.insert(begin + i);
    return members;
}

Set set_of(const std::set<Node>& members, Random& random) {
    std::vector<Node> order(members.begin(), members.end());
    std::shuffle(order.begin(), order.end(), random);
    Set set;
    for (const Node node : order) set.add(node);
    return set;
}

void expect_same(const Set& set, const std::set<Node>& expected) {
    ASSERT_EQ(set.size(), expected.size());
    ASSERT_EQ(set.empty(), expected.empty());
    ASSERT_TRUE(std::equal(set.begin(), set.end(), expected.begin(), expected.end())) << set.text();
    if (expected.empty()) {
        ASSERT_EQ(set, Set{});
        return;
    }
    ASSERT_EQ(set.first(), *expected.begin());
    ASSERT_EQ(set.last(), *expected.rbegin());
}

std::vector<std::byte> encoded(const Set& set) {
    std::vector<std::byte> bytes;
    set.encode(bytes);
    return bytes;
}

std::optional<Set> decoded(const std::vector<std::byte>& bytes, Node nodes) {
    Bytes left = bytes;
    return Set::decode(left, nodes);
}

std::vector<std::byte> raw(std::initializer_list<unsigned> values) {
    std::vector<std::byte> bytes;
    for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

TEST(Set, ranks_count_the_members_before) {
    const Set set{3, 64, 65, 700};
    EXPECT_EQ(set.rank(0), 0u);
    EXPECT_EQ(set.rank(3), 0u);
    EXPECT_EQ(set.rank(4), 1u);
    EXPECT_EQ(set.rank(65), 2u);
    EXPECT_EQ(set.rank(700), 3u);
    EXPECT_EQ(set.rank(100'000), 4u);
    EXPECT_EQ(set.at(2), 65u);
}

TEST(Set, the_text_joins_neighbours) {
    EXPECT_EQ(Set{}.text(), "");
    EXPECT_EQ((Set{0, 1, 2, 3, 7, 9}).text(), "0-3,7,9");
    EXPECT_EQ(Set::range(62, 67).text(), "62-66");
}

TEST(Set, a_range_ends_before_its_end) {
    EXPECT_EQ(Set::range(5, 5), Set{});
    EXPECT_EQ(Set::range(6, 5), Set{});
    EXPECT_EQ(Set::range(5, 6), Set{5});
    EXPECT_EQ(Set::range(10, 130, 40), (Set{10, 50, 90}));
    EXPECT_EQ(Set::range(10, 131, 40), (Set{10, 50, 90, 130}));
    EXPECT_EQ(Set::range(64, 192).size(), 128u);
}

TEST(Set, the_highest_numbers_there_are_can_be_members) {
    constexpr Node highest = std::numeric_limits<Node>::max();
    Set set{highest - 70, highest};
    EXPECT_EQ(std::vector<Node>(set.begin(), set.end()), (std::vector<Node>{highest - 70, highest}));
    EXPECT_EQ(decoded(encoded(Set{highest - 1}), highest), Set{highest - 1});
    EXPECT_EQ(decoded(encoded(Set{highest}), highest), std::nullopt);
    set.remove(highest);
    EXPECT_EQ(set, Set{highest - 70});
}

TEST(Set, does_what_a_plain_set_does) {
    simulation::for_each_seed(300, [](std::uint64_t seed) {
        Random random(seed);
        const Node nodes = random() % 2 == 0 ? 300 : 20'000;
        std::set<Node> plain = random_members(random, nodes);
        Set set = set_of(plain, random);
        expect_same(set, plain);

        Node rank = 0;
        for (const Node node : plain) {
            ASSERT_TRUE(set.contains(node));
            ASSERT_EQ(set.rank(node), rank);
            ASSERT_EQ(set.at(rank), node);
            rank += 1;
        }
        for (int i = 0; i < 20; ++i) {
            const Node node = static_cast<Node>(random() % nodes);
            ASSERT_EQ(set.contains(node), plain.contains(node));
            ASSERT_EQ(set.rank(node), std::distance(plain.begin(), plain.lower_bound(node)));
        }

        for (int i = 0; i < 20 && !plain.empty(); ++i) {
            const Node node = random() % 2 == 0 ? *plain.begin() : static_cast<Node>(random() % nodes);
            plain.erase(node);
            set.remove(node);
        }
        expect_same(set, plain);
    });
}

TEST(Set, a_slice_is_the_members_of_those_ranks) {
    simulation::for_each_seed(200, [](std::uint64_t seed) {
        Random random(seed);
        const std::set<Node> plain = random_members(random, 5'000);
        const Set set = set_of(plain, random);
        const Node begin = static_cast<Node>(random() % (plain.size() + 1));
        const Node end = begin + static_cast<Node>(random() % (plain.size() + 2));
        std::set<Node> expected;
        Node rank = 0;
        for (const Node node : plain) {
            if (rank >= begin && rank < end) expected.insert(node);
            rank += 1;
        }
        expect_same(set.slice(begin, end), expected);
    });
}

TEST(Set, joins_cuts_and_takes_away) {
    simulation::for_each_seed(300, [](std::uint64_t seed) {
        Random random(seed);
        const Node nodes = random() % 2 == 0 ? 200 : 6'000;
        const std::set<Node> a = random_members(random, nodes);
        const std::set<Node> b = random() % 8 == 0 ? a : random_members(random, nodes);
        const Set set_a = set_of(a, random);
        const Set set_b = set_of(b, random);
        std::set<Node> either, both, only_a;
        std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::inserter(either, either.end()));
        std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
        std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(only_a, only_a.end()));
        expect_same(set_a | set_b, either);
        expect_same(set_a & set_b, both);
        expect_same(set_a - set_b, only_a);
        ASSERT_EQ(set_a == set_b, a == b);
        ASSERT_EQ(Set{} | set_a, set_a);
        ASSERT_EQ(set_a & Set{}, Set{});
        ASSERT_EQ(set_a - Set{}, set_a);
        Set self = set_a;
        ASSERT_EQ(self -= self, Set{});
    });
}

TEST(Set, comes_off_the_wire_as_it_went_on) {
    simulation::for_each_seed(500, [](std::uint64_t seed) {
        Random random(seed);
        const Node nodes = random() % 2 == 0 ? 300 : 100'000;
        const std::set<Node> plain = random_members(random, nodes);
        const Set set = set_of(plain, random);
        std::vector<std::byte> bytes = raw({7, 7});
        set.encode(bytes);
        bytes.push_back(std::byte{9});
        Bytes left = Bytes(bytes).subspan(2);
        const std::optional<Set> back = Set::decode(left, nodes);
        ASSERT_EQ(back, set);
        expect_same(*back, plain);
        ASSERT_EQ(left.size(), 1u);
        ASSERT_EQ(left[0], std::byte{9});
        // Never worse than either of the two that any set can take.
        ASSERT_LE(bytes.size() - 3, 1 + 5 + 5 * plain.size());
        if (plain.empty()) return;
        ASSERT_LE(bytes.size() - 3, 1 + 3 + 3 + (set.last() - set.first()) / 8 + 9);
    });
}

TEST(Set, takes_the_shortest_form) {
    EXPECT_EQ(encoded(Set{}), raw({0, 0}));
    EXPECT_EQ(encoded(Set{5}), raw({0, 1, 5}));
    EXPECT_EQ(encoded(Set{5, 305}), raw({0, 2, 5, 0xac, 2}));
    EXPECT_EQ(encoded(Set::range(0, 1000)), raw({1, 0, 0xe8, 7, 1}));
    EXPECT_EQ(encoded(Set::range(2, 1000, 100)), raw({1, 2, 10, 100}));
    EXPECT_EQ(encoded(Set{64, 65, 66, 70, 72, 73}), raw({2, 1, 2, 0x47, 3}));
}

TEST(Set, bytes_that_are_no_set_are_refused) {
    EXPECT_EQ(decoded({}, 100), std::nullopt);
    EXPECT_EQ(decoded(raw({3, 0}), 100), std::nullopt);                               // no such form
    EXPECT_EQ(decoded(raw({0}), 100), std::nullopt);                                  // cut short
    EXPECT_EQ(decoded(raw({0, 2, 5}), 100), std::nullopt);                            // cut short
    EXPECT_EQ(decoded(raw({0, 2, 5, 0}), 100), std::nullopt);                         // does not increase
    EXPECT_EQ(decoded(raw({0, 2, 5, 95}), 100), std::nullopt);                        // no such node
    EXPECT_EQ(decoded(raw({0, 2, 5, 94}), 100), (Set{5, 99}));                        //
    EXPECT_EQ(decoded(raw({0, 1, 0x85, 0}), 100), std::nullopt);                      // longer than it had to be
    EXPECT_EQ(decoded(raw({0, 1, 0x80, 0x80, 0x80, 0x80, 0x10}), 100), std::nullopt); // 2^32
    EXPECT_EQ(decoded(raw({0, 3, 5, 0xff, 0xff, 0xff, 0xff, 0x0f, 2}), 100), std::nullopt);
    EXPECT_EQ(decoded(raw({1, 5, 0, 1}), 100), std::nullopt);  // an empty range
    EXPECT_EQ(decoded(raw({1, 5, 2, 0}), 100), std::nullopt);  // no step
    EXPECT_EQ(decoded(raw({0, 1, 100}), 100), std::nullopt);   // no such node
    EXPECT_EQ(decoded(raw({0, 1, 99}), 100), Set{99});         //
    EXPECT_EQ(decoded(raw({1, 100, 1, 1}), 100), std::nullopt); // no such node
    EXPECT_EQ(decoded(raw({1, 99, 1, 1}), 100), Set{99});      //
    EXPECT_EQ(decoded(raw({1, 5, 1, 2}), 100), std::nullopt);  // one has no step
    EXPECT_EQ(decoded(raw({1, 5, 20, 5}), 100), std::nullopt); // no such node
    EXPECT_EQ(decoded(raw({1, 4, 20, 5}), 100), Set::range(4, 100, 5));
    EXPECT_EQ(decoded(raw({1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f}), 100), std::nullopt);
    EXPECT_EQ(decoded(raw({2, 0, 0}), 100), std::nullopt);
    EXPECT_EQ(decoded(raw({2, 0, 2, 1}), 100), std::nullopt);                         // cut short
    EXPECT_EQ(decoded(raw({2, 0, 2, 1, 0}), 100), std::nullopt);                      // nothing in the last byte
    EXPECT_EQ(decoded(raw({2, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1}), 100), std::nullopt); // nor in the first word
    EXPECT_EQ(decoded(raw({2, 1, 5, 1, 0, 0, 0, 0x10}), 100), std::nullopt);          // no such node
    EXPECT_EQ(decoded(raw({2, 1, 5, 1, 0, 0, 0, 0x08}), 100), (Set{64, 99}));
    EXPECT_EQ(decoded(raw({2, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1}), 100), std::nullopt);
    EXPECT_EQ(decoded(raw({0, 0}), 0), Set{});
    EXPECT_EQ(decoded(raw({0, 1, 0}), 0), std::nullopt);
}

TEST(Set, any_bytes_are_a_set_below_the_bound_or_refused_as_a_whole) {
    int sets = 0;
    simulation::for_each_seed(2'000, [&](std::uint64_t seed) {
        Random random(seed);
        const Node nodes = static_cast<Node>(random() % 3'000);
        std::vector<std::byte> bytes(random() % 30);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        if (random() % 4 != 0) { // a good one, made bad
            bytes = encoded(set_of(random_members(random, nodes + 1), random));
            for (std::size_t i = random() % 4; i > 0; --i)
                bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
            if (random() % 3 == 0) bytes.resize(random() % (bytes.size() + 1));
        } else if (!bytes.empty()) {
            bytes[0] &= std::byte{3};
        }
        Bytes left = bytes;
        const std::optional<Set> set = Set::decode(left, nodes);
        if (!set) {
            ASSERT_EQ(left.size(), bytes.size());
            return;
        }
        sets += 1;
        ASSERT_LT(left.size(), bytes.size());
        std::set<Node> plain(set->begin(), set->end());
        expect_same(*set, plain);
        ASSERT_TRUE(plain.empty() || *plain.rbegin() < nodes);
        ASSERT_EQ(decoded(encoded(*set), nodes), set);
        ASSERT_LE(encoded(*set).size(), bytes.size() - left.size());
    });
    EXPECT_TRUE(sets > 100 || std::getenv("KUMI_SEED") != nullptr) << sets;
}

} // namespace
} // namespace kumi::group
