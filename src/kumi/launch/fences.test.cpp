#include "kumi/launch/fences.hpp"

#include <gtest/gtest.h>

namespace kumi::launch {
namespace {

/// Three hosts, with nodes 0 and 1, 2, and 3 to 5.
class FencesTest : public testing::Test {
protected:
    /// "0,2: all that was given", if a fence is over.
    std::string give(std::uint32_t node, const std::string& key, const std::string& content) {
        const Bytes bytes = bytes_of(std::string_view(content));
        const auto met = fences_.on_fence(node, {key, {bytes.begin(), bytes.end()}});
        if (!met) return "";
        EXPECT_EQ(met->fence.key, key);
        std::string text;
        for (const std::uint32_t one : met->nodes) text += std::to_string(one) + " ";
        return text + std::string(text_of(met->fence.content));
    }

    Fences fences_{{{"a", 0, 2}, {"b", 2, 1}, {"c", 3, 3}}};
};

TEST_F(FencesTest, all_hosts_get_what_all_have_given_in_the_order_of_hosts) {
    EXPECT_EQ(give(4, "x*", "C"), "");
    EXPECT_EQ(give(0, "x*", "A"), "");
    EXPECT_EQ(give(2, "x*", "B"), "0 2 3 ABC");
    EXPECT_EQ(give(2, "x*", ""), "") << "another round";
    EXPECT_EQ(give(3, "x*", "c"), "");
    EXPECT_EQ(give(1, "x*", "a"), "0 2 3 ac");
}

TEST_F(FencesTest, a_host_may_be_a_round_ahead) {
    EXPECT_EQ(give(0, "x*", "1"), "");
    EXPECT_EQ(give(0, "x*", "4"), "");
    EXPECT_EQ(give(2, "x*", "2"), "");
    EXPECT_EQ(give(2, "x*", "5"), "");
    EXPECT_EQ(give(3, "x*", "3"), "0 2 3 123");
    EXPECT_EQ(give(3, "x*", "6"), "0 2 3 456");
}

TEST_F(FencesTest, only_hosts_of_named_nodes_take_part) {
    EXPECT_EQ(give(3, "x1,3,5", "C"), "");
    EXPECT_EQ(give(2, "x1,3,5", "B"), "") << "not asked";
    EXPECT_EQ(give(1, "x1,3,5", "A"), "0 3 AC");
    EXPECT_EQ(give(2, "x2", "B"), "2 B");
}

TEST_F(FencesTest, fences_with_other_keys_are_others) {
    EXPECT_EQ(give(0, "x*", "A"), "");
    EXPECT_EQ(give(2, "1*", "b"), "");
    EXPECT_EQ(give(3, "1*", "c"), "");
    EXPECT_EQ(give(2, "x*", "B"), "");
    EXPECT_EQ(give(0, "1*", "a"), "0 2 3 abc");
    EXPECT_EQ(give(3, "x*", "C"), "0 2 3 ABC");
}

TEST_F(FencesTest, a_key_without_sense_is_ignored) {
    for (const char* const key : {"", "x", "x6", "x1,0"}) EXPECT_EQ(give(0, key, "A"), "") << key;
}

} // namespace
} // namespace kumi::launch
