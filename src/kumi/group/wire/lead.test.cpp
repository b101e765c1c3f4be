#include "kumi/group/wire/lead.hpp"

#include "kumi/group/groups.hpp"

#include <gtest/gtest.h>

namespace kumi::group::lead_test {
namespace {

const Set some{1, 3, 4};

TEST(Lead, comes_back_as_it_was_written_and_its_size_is_a_multiple_of_8) {
    const std::vector<Before> before{{7, Set{1, 9}}, {5, Set{3, 4}}};
    const auto bytes = lead_of(some, before, Set{1, 3, 4, 9});
    EXPECT_EQ(bytes.size() % 8, 0u);
    const auto lead = read_lead(bytes, 10);
    ASSERT_TRUE(lead);
    EXPECT_EQ(lead->set, some);
    EXPECT_EQ(lead->members, (Set{1, 3, 4, 9}));
    ASSERT_EQ(lead->before.size(), 2u);
    EXPECT_EQ(lead->before[0].sequence, 7u);
    EXPECT_EQ(lead->before[0].members, Set{1}) << "node 9 is not in the set";
    EXPECT_EQ(lead->before[1].sequence, 5u);
    EXPECT_EQ(lead->before[1].members, (Set{3, 4}));
}

TEST(Lead, what_concerns_no_member_of_the_set_is_left_out) {
    const auto lead = read_lead(lead_of(some, {{7, Set{2, 5}}, {6, Set{1}}}, {}), 10);
    ASSERT_TRUE(lead);
    ASSERT_EQ(lead->before.size(), 1u);
    EXPECT_EQ(lead->before[0].sequence, 6u);
    EXPECT_TRUE(lead->members.empty());
}

TEST(Lead, is_appended_behind_what_a_message_has_already) {
    std::vector<std::byte> message(5, std::byte{1});
    append_lead(message, some, {}, {});
    EXPECT_EQ(message[4], std::byte{1});
    EXPECT_EQ((message.size() - 5) % 8, 0u);
    EXPECT_TRUE(read_lead(Bytes(message).subspan(5), 10));
}

TEST(Lead, that_is_cut_short_too_long_or_of_other_nodes_is_none) {
    const auto bytes = lead_of(some, {{7, Set{1}}}, some);
    ASSERT_TRUE(read_lead(bytes, 5));
    EXPECT_FALSE(read_lead(bytes, 4)) << "there is no node 4";
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(read_lead(Bytes(bytes).first(size), 5)) << size;
    auto longer = bytes;
    longer.resize(bytes.size() + 8);
    EXPECT_FALSE(read_lead(longer, 5));
}

TEST(Lead, no_master_has_more_under_way_than_it_may) {
    std::vector<Before> before;
    for (std::size_t i = 0; i < Groups::under_way_max; ++i) before.push_back({i + 1, some});
    EXPECT_TRUE(read_lead(lead_of(some, before, {}), 10));
    before.push_back({1000, some});
    EXPECT_FALSE(read_lead(lead_of(some, before, {}), 10));
}

} // namespace
} // namespace kumi::group::lead_test
