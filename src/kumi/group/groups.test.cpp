#include "kumi/group/groups.hpp"

#include "kumi/group/gather.hpp"
#include "kumi/group/wire/multicast.hpp"

#include <gtest/gtest.h>

namespace kumi::group {
namespace {

std::vector<std::byte> value_with(ValueHead head, std::size_t bytes) {
    std::vector<std::byte> value(sizeof head + bytes, std::byte{7});
    copy_bytes(value.data(), bytes_of(head));
    return value;
}

TEST(Values, come_off_the_front_one_by_one) {
    auto bytes = value_with({3, 2}, 2);
    const auto second = value_with({5, 0}, 0);
    bytes.insert(bytes.end(), second.begin(), second.end());
    Bytes left = bytes;
    const auto one = take_value(left);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->first, 3u);
    EXPECT_EQ(one->second.size(), 2u);
    const auto other = take_value(left);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->first, 5u);
    EXPECT_TRUE(other->second.empty());
    EXPECT_FALSE(take_value(left));
}

TEST(Values, that_are_cut_short_are_none) {
    for (const std::uint32_t told : {3u, 4u, 5u, ~0u}) {
        const auto bytes = value_with({1, told}, 4);
        Bytes left = bytes;
        EXPECT_EQ(take_value(left).has_value(), told <= 4) << told;
    }
    const auto bytes = value_with({1, 0}, 0);
    Bytes left = Bytes(bytes).first(sizeof(ValueHead) - 1);
    EXPECT_FALSE(take_value(left));
}

} // namespace
} // namespace kumi::group
