#include "kumi/base/net/ip_address.hpp"

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

TEST(IpAddress, is_read_and_written_in_both_families) {
    for (const char* text :
         {"10.77.3.4", "255.255.255.255", "::", "fd77:1::4", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}) {
        const auto address = IpAddress::parse(text);
        ASSERT_TRUE(address) << text;
        EXPECT_EQ(address->text(), text);
        EXPECT_EQ(address->size, std::string_view(text).find(':') == std::string_view::npos ? 4u : 16u);
    }
}

TEST(IpAddress, the_last_bits_are_those_behind_the_first) {
    const auto ones = *IpAddress::parse("255.255.255.255"), zeros = *IpAddress::parse("0.0.0.0");
    for (const auto& [bits, text] : {std::pair<unsigned, const char*>{0, "0.0.0.0"},
                                     {1, "128.0.0.0"},
                                     {7, "254.0.0.0"},
                                     {8, "255.0.0.0"},
                                     {9, "255.128.0.0"},
                                     {31, "255.255.255.254"},
                                     {32, "255.255.255.255"}}) {
        EXPECT_EQ(with_last_bits(ones, bits, false).text(), text) << bits;
        EXPECT_EQ(with_last_bits(zeros, bits, false), zeros);
        EXPECT_EQ(with_last_bits(ones, bits, true), ones);
    }
    EXPECT_EQ(with_last_bits(zeros, 24, true).text(), "0.0.0.255");
    EXPECT_EQ(with_last_bits(*IpAddress::parse("fd77::"), 127, true).text(), "fd77::1");
}

TEST(Subnet, holds_its_first_and_last_address_and_not_those_beside_them) {
    const Subnet subnet{*IpAddress::parse("10.77.4.0"), 22};
    for (const char* text : {"10.77.4.0", "10.77.7.255"}) EXPECT_TRUE(subnet.holds(*IpAddress::parse(text))) << text;
    for (const char* text : {"10.77.3.255", "10.77.8.0", "::a4d:400"})
        EXPECT_FALSE(subnet.holds(*IpAddress::parse(text))) << text;
    EXPECT_EQ(subnet.text(), "10.77.4.0/22");
    EXPECT_TRUE((Subnet{*IpAddress::parse("0.0.0.0"), 0}.holds(*IpAddress::parse("1.2.3.4"))));
    EXPECT_TRUE(subnet.overlaps(subnet));
}

TEST(IpAddress, knows_which_a_host_can_have) {
    for (const char* text : {"10.0.0.1", "127.0.0.1", "223.255.255.255", "240.0.0.1", "255.255.255.254", "1.0.0.0",
                             "::1", "fd00::1", "fe80::1"})
        EXPECT_TRUE(IpAddress::parse(text)->is_of_one_host()) << text;
    for (const char* text :
         {"0.0.0.0", "0.0.0.1", "224.0.0.0", "239.255.255.255", "255.255.255.255", "::", "ff00::", "ff02::1"})
        EXPECT_FALSE(IpAddress::parse(text)->is_of_one_host()) << text;
}

} // namespace
} // namespace kumi::base
