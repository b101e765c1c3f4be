#include "kumi/cluster/placement.hpp"

#include "kumi/cluster/file.hpp"

#include <gtest/gtest.h>

namespace kumi::cluster {
namespace {

/// How many nodes each host gets.
std::vector<std::uint32_t> counts(const char* hosts, std::uint32_t nodes, const char* policy) {
    const auto cluster = parse_host_list(hosts);
    const auto placement = place(*cluster, nodes, *Policy::parse(policy));
    EXPECT_TRUE(placement) << (placement ? "" : placement.error().text());
    std::vector<std::uint32_t> result(cluster->hosts.size());
    for (const Seat& seat : *placement) EXPECT_EQ(seat.slot, result[seat.host]++);
    return result;
}

std::string refusal(const char* hosts, std::uint32_t nodes, const char* policy) {
    const auto placement = place(*parse_host_list(hosts), nodes, *Policy::parse(policy));
    return placement ? "" : placement.error().text();
}

using Counts = std::vector<std::uint32_t>;

TEST(Placement, the_papers_three_ways_to_seat_four) {
    EXPECT_EQ(counts("a[0-3]:4", 4, "spread"), (Counts{1, 1, 1, 1}));
    EXPECT_EQ(counts("a[0-3]:4", 4, "2-per-host"), (Counts{2, 2, 0, 0}));
    EXPECT_EQ(counts("a[0-3]:4", 4, "pack"), (Counts{4, 0, 0, 0}));
}

TEST(Placement, slots_are_never_exceeded) {
    EXPECT_EQ(counts("a:1,b:3,c:2", 5, "spread"), (Counts{1, 2, 2}));
    EXPECT_EQ(counts("a:1,b:3,c:2", 6, "spread"), (Counts{1, 3, 2}));
    EXPECT_EQ(counts("a:1,b:3,c:2", 5, "pack"), (Counts{1, 3, 1}));
    EXPECT_EQ(counts("a:1,b:3,c:2", 5, "2-per-host"), (Counts{1, 2, 2}));
}

TEST(Placement, what_cannot_be_seated_is_refused_with_the_numbers) {
    EXPECT_EQ(refusal("a,b:2", 4, "pack"),
              "4 nodes wanted, and the 2 hosts have 3 slots in all: start fewer, or give hosts more slots");
    EXPECT_EQ(refusal("a", 2, "pack"),
              "2 nodes wanted, and the host has 1 slot in all: start fewer, or give hosts more slots");
    EXPECT_EQ(refusal("a:2,b:2", 3, "1-per-host"),
              "1-per-host: only 2 of 3 nodes fit; give hosts more slots, or use another placement");
}

TEST(Placement, a_policy_is_one_of_three) {
    for (const char* good : {"pack", "spread", "1-per-host", "64-per-host"})
        EXPECT_EQ(Policy::parse(good)->text(), good);
    for (const char* bad :
         {"", "packed", "0-per-host", "-per-host", "x-per-host", "2", "-1-per-host", "99999999999-per-host"})
        EXPECT_FALSE(Policy::parse(bad)) << bad;
}

TEST(Placement, a_slot_for_each_node_is_enough_and_one_fewer_is_not) {
    for (const char* policy : {"pack", "spread"}) {
        EXPECT_EQ(counts("a:2,b:3", 5, policy), (Counts{2, 3})) << policy;
        EXPECT_NE(refusal("a:2,b:3", 6, policy), "") << policy;
    }
    EXPECT_EQ(counts("a:2,b:3", 4, "2-per-host"), (Counts{2, 2}));
    EXPECT_NE(refusal("a:2,b:3", 5, "2-per-host"), "") << "slots there are, but not so";
    EXPECT_EQ(counts("a:2,b:3", 1, "1-per-host"), (Counts{1, 0}));
}

TEST(Placement, nodes_of_a_host_have_numbers_in_a_row) {
    for (const char* policy : {"pack", "spread", "2-per-host"}) {
        const auto placement = place(*parse_host_list("a:2,b:2,c:2"), 5, *Policy::parse(policy));
        ASSERT_TRUE(placement);
        EXPECT_EQ(*placement, (Placement{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}})) << policy;
    }
}

} // namespace
} // namespace kumi::cluster
