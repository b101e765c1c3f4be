#include "kumi/device/composite/stripes/striped_messages.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

TEST(StripedMessages, other_messages_are_ahead_of_the_first_that_has_not_arrived) {
    StripedMessages striped;
    EXPECT_EQ(striped.bytes_since_first(1000), 0u);
    striped.push(4, 1000);
    striped.push(6, 1500);
    EXPECT_EQ(striped.bytes_since_first(2500), 1500u);
    EXPECT_FALSE(striped.on_arrived(4)) << "the earlier ones have, not message 4 itself";
    EXPECT_TRUE(striped.on_arrived(6));
    EXPECT_EQ(striped.bytes_since_first(2500), 1000u);
    EXPECT_TRUE(striped.on_arrived(7));
    EXPECT_TRUE(striped.empty());
    EXPECT_EQ(striped.bytes_since_first(2500), 0u);
}

TEST(StripedMessages, numbers_may_wrap) {
    StripedMessages striped;
    striped.push(static_cast<Sequence>(-1), 10);
    striped.push(1, 20);
    EXPECT_TRUE(striped.on_arrived(1));
    EXPECT_EQ(striped.bytes_since_first(30), 10u);
}

} // namespace
} // namespace kumi::device::composite
