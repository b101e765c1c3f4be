// What group/set.hpp promises. Sets depend on no world, so this runs once.

#include "kumi/group/set.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace kumi::group_test {
namespace {

using group::Set;
using pm::Node;

TEST(SetPromise, it_has_the_nodes_that_were_added_and_not_removed_each_once) {
    Set set{5, 1, 5};
    EXPECT_EQ(set.size(), 2u);
    set.add(200);
    set.add(200);
    set.remove(1);
    set.remove(1);
    EXPECT_EQ(set, (Set{5, 200}));
    EXPECT_TRUE(set.contains(5));
    EXPECT_FALSE(set.contains(1));
    EXPECT_FALSE(set.contains(~Node{0}));
    set.remove(5);
    set.remove(200);
    EXPECT_TRUE(set.empty());
    EXPECT_EQ(set, Set());
}

TEST(SetPromise, a_range_goes_from_begin_to_before_end_in_steps) {
    EXPECT_EQ(Set::range(3, 6), (Set{3, 4, 5}));
    EXPECT_EQ(Set::range(3, 10, 3), (Set{3, 6, 9}));
    EXPECT_EQ(Set::range(3, 9, 3), (Set{3, 6}));
    EXPECT_EQ(Set::range(3, 4, 100), (Set{3}));
    EXPECT_TRUE(Set::range(3, 3).empty());
    EXPECT_TRUE(Set::range(4, 3).empty());
    EXPECT_EQ(Set::range(~Node{0} - 1, ~Node{0}).first(), ~Node{0} - 1);
}

TEST(SetPromise, a_rank_is_the_number_of_members_before_a_node) {
    const Set set{2, 70, 300};
    EXPECT_EQ(set.rank(2), 0u);
    EXPECT_EQ(set.rank(70), 1u);
    EXPECT_EQ(set.rank(300), 2u);
    EXPECT_EQ(set.rank(0), 0u) << "of nodes that are no members, too";
    EXPECT_EQ(set.rank(71), 2u);
    EXPECT_EQ(set.rank(~Node{0}), 3u);
    for (Node rank = 0; rank < set.size(); ++rank) EXPECT_EQ(set.rank(set.at(rank)), rank);
    EXPECT_EQ(set.first(), 2u);
    EXPECT_EQ(set.last(), 300u);
    EXPECT_EQ(Set().rank(7), 0u);
}

TEST(SetPromise, a_slice_has_the_ranks_that_exist) {
    const Set set{2, 70, 300};
    EXPECT_EQ(set.slice(1, 3), (Set{70, 300}));
    EXPECT_EQ(set.slice(1, ~Node{0}), (Set{70, 300}));
    EXPECT_EQ(set.slice(0, 3), set);
    EXPECT_TRUE(set.slice(2, 2).empty());
    EXPECT_TRUE(set.slice(9, 12).empty());
    EXPECT_TRUE(set.slice(2, 1).empty());
}

TEST(SetPromise, sets_are_united_cut_and_subtracted_also_with_themselves) {
    const Set a{1, 100, 500}, b{0, 100, 900};
    EXPECT_EQ(a | b, (Set{0, 1, 100, 500, 900}));
    EXPECT_EQ(a & b, Set{100});
    EXPECT_EQ(a - b, (Set{1, 500}));
    Set same = a;
    const Set& alias = same;
    same |= alias;
    EXPECT_EQ(same, a);
    same &= alias;
    EXPECT_EQ(same, a);
    same -= alias;
    EXPECT_EQ(same, Set());
    EXPECT_EQ(a | Set(), a);
    EXPECT_EQ(Set() | a, a);
    EXPECT_EQ(a & Set(), Set());
    EXPECT_EQ(a - Set(), a);
    EXPECT_EQ(Set() - a, Set());
}

TEST(SetPromise, members_are_visited_from_the_lowest_to_the_highest) {
    const Set set{900, 63, 64, 0};
    EXPECT_EQ(std::vector<Node>(set.begin(), set.end()), (std::vector<Node>{0, 63, 64, 900}));
    const Set none;
    EXPECT_EQ(none.begin(), none.end());
}

TEST(SetPromise, its_text_is_for_people) {
    EXPECT_EQ((Set{0, 1, 2, 3, 7, 9}).text(), "0-3,7,9");
    EXPECT_EQ(Set{5}.text(), "5");
    EXPECT_EQ(Set().text(), "");
}

TEST(SetPromise, what_was_encoded_is_decoded_and_what_follows_it_is_left) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 300; ++round) {
        Set set;
        std::set<Node> model;
        const Node nodes = 1 + static_cast<Node>(random() % 2000);
        for (auto count = random() % 60; count > 0; --count) {
            const auto node = static_cast<Node>(random() % nodes);
            set.add(node);
            model.insert(node);
        }
        EXPECT_TRUE(std::ranges::equal(set, model));
        std::vector<std::byte> bytes;
        set.encode(bytes);
        const std::size_t length = bytes.size();
        bytes.push_back(std::byte{77});
        Bytes left = bytes;
        EXPECT_EQ(Set::decode(left, nodes), set);
        EXPECT_EQ(left.size(), 1u);
        // Cut short, or with a member that is no node of the job: nothing, and the bytes are as they were.
        for (std::size_t cut = 0; cut < length; ++cut) {
            Bytes part = Bytes(bytes).first(cut);
            const auto shorter = Set::decode(part, nodes);
            EXPECT_TRUE(shorter ? shorter->size() <= set.size() : part.size() == cut);
        }
        if (set.empty()) continue;
        Bytes again = bytes;
        EXPECT_FALSE(Set::decode(again, set.last())) << "the last member is not below";
        EXPECT_EQ(again.size(), bytes.size());
    }
}

TEST(SetPromise, the_encoding_is_the_shortest_of_a_list_a_range_and_bits) {
    const auto bytes_of = [](const Set& set) {
        std::vector<std::byte> bytes;
        set.encode(bytes);
        return bytes.size();
    };
    EXPECT_LE(bytes_of(Set::range(0, 10'000)), 6u);
    EXPECT_LE(bytes_of(Set::range(1, 10'000, 7)), 6u);
    EXPECT_LE(bytes_of({9000}), 4u);
    Set half;
    for (Node node = 0; node < 800; node += 1 + node % 3) half.add(node);
    EXPECT_LE(bytes_of(half), 800u / 8 + 8);
}

} // namespace
} // namespace kumi::group_test
