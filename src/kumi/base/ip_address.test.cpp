#include "kumi/base/ip_address.hpp"

#include <gtest/gtest.h>

namespace kumi::base {
namespace {

TEST(IpAddress, only_numbers_are_read) {
    EXPECT_EQ(IpAddress::parse("fd77:0::1")->text(), "fd77::1");
    EXPECT_FALSE(IpAddress::parse("fe80::1%eth0"));
    EXPECT_FALSE(IpAddress::parse("10.0.0"));
}

TEST(Subnet, two_overlap_when_one_holds_the_other) {
    const Subnet wide{*IpAddress::parse("10.77.0.0"), 16};
    const Subnet narrow{*IpAddress::parse("10.77.3.0"), 24};
    EXPECT_TRUE(wide.overlaps(narrow));
    EXPECT_TRUE(narrow.overlaps(wide));
    EXPECT_FALSE(narrow.overlaps({*IpAddress::parse("10.77.4.0"), 24}));
    EXPECT_FALSE(narrow.overlaps({*IpAddress::parse("fd77::"), 64}));
}

} // namespace
} // namespace kumi::base
