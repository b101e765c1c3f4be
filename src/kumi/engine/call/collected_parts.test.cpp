#include "kumi/engine/call/collected_parts.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

constexpr OperationId asked_one{1, 1}, asked_again{1, 2}, asked_other{2, 1};

std::vector<std::byte> part_of(std::size_t bytes, int with) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(with));
}

TEST(CollectedParts, are_put_together_by_node_and_operation) {
    CollectedParts parts(100);
    EXPECT_TRUE(parts.add(3, {asked_one, 5, 0}, part_of(3, 1)));
    EXPECT_TRUE(parts.add(4, {asked_one, 5, 0}, part_of(3, 2)));
    EXPECT_TRUE(parts.add(3, {asked_other, 5, 0}, part_of(3, 3)));
    EXPECT_TRUE(parts.add(3, {asked_again, 5, 0}, part_of(3, 4)));
    EXPECT_TRUE(parts.add(3, {asked_one, 5, 3}, part_of(2, 1)));
    EXPECT_EQ(parts.size(), 4u);
    EXPECT_EQ(parts.take(3, asked_one), part_of(5, 1));
    EXPECT_FALSE(parts.take(3, asked_one)) << "once";
    EXPECT_FALSE(parts.take(5, asked_one));
    EXPECT_EQ(parts.take(4, asked_one), part_of(3, 2));
}

TEST(CollectedParts, that_do_not_fit_are_refused_with_those_before_them) {
    CollectedParts parts(100);
    EXPECT_FALSE(parts.add(1, {asked_one, 101, 0}, part_of(10, 1))) << "more than may be";
    EXPECT_TRUE(parts.add(1, {asked_one, 100, 0}, part_of(10, 1)));
    EXPECT_FALSE(parts.add(1, {asked_one, 100, 11}, part_of(10, 1))) << "a gap";
    EXPECT_EQ(parts.size(), 0u);
    EXPECT_TRUE(parts.add(1, {asked_one, 100, 0}, part_of(10, 1)));
    EXPECT_FALSE(parts.add(1, {asked_one, 100, 9}, part_of(10, 1))) << "twice";
    EXPECT_TRUE(parts.add(1, {asked_one, 100, 0}, part_of(90, 1)));
    EXPECT_FALSE(parts.add(1, {asked_one, 100, 90}, part_of(11, 1))) << "beyond the end";
    EXPECT_FALSE(parts.add(1, {asked_one, 5, ~std::uint64_t{0}}, part_of(10, 1)));
    EXPECT_EQ(parts.size(), 0u);
    EXPECT_TRUE(parts.add(1, {asked_one, 100, 0}, part_of(90, 1)));
    EXPECT_TRUE(parts.add(1, {asked_one, 100, 90}, part_of(10, 1)));
}

TEST(CollectedParts, of_a_lost_node_are_dropped) {
    CollectedParts parts(100);
    for (const Node node : {1u, 2u, 3u})
        for (const OperationId& id : {asked_one, asked_again, asked_other})
            EXPECT_TRUE(parts.add(node, {id, 10, 0}, part_of(1, 1)));
    parts.drop(2);
    EXPECT_EQ(parts.size(), 6u);
    EXPECT_FALSE(parts.take(2, asked_one));
    EXPECT_TRUE(parts.take(1, asked_other));
    EXPECT_TRUE(parts.take(3, asked_one));
    parts.drop(7);
    EXPECT_EQ(parts.size(), 4u);
}

} // namespace
} // namespace kumi::engine
