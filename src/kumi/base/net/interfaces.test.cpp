#include "kumi/base/net/interfaces.hpp"

#include <gtest/gtest.h>

namespace kumi::base {
namespace {

TEST(Interfaces, addresses_of_the_loopback_and_of_single_cables_are_not_for_others) {
    for (const char* const text :
         {"127.0.0.1", "127.9.9.9", "169.254.3.4", "0.0.0.0", "::1", "::", "fe80::1", "ff02::1", "::ffff:10.0.0.1"})
        EXPECT_FALSE(is_for_others(*IpAddress::parse(text))) << text;
    for (const char* const text : {"10.77.1.1", "172.17.0.1", "192.168.0.1", "169.253.0.1", "8.8.8.8", "fd00::1",
                                   "fc00::1", "2001:db8::1", "3fff::1"})
        EXPECT_TRUE(is_for_others(*IpAddress::parse(text))) << text;
}

TEST(Interfaces, a_subnet_is_what_an_address_shares_with_its_neighbours) {
    const Interface wide{"eth0", *IpAddress::parse("10.77.3.4"), 20};
    EXPECT_EQ(wide.subnet().text(), "10.77.0.0/20");
    EXPECT_EQ(wide.text(), "10.77.3.4/20");
    EXPECT_EQ((Interface{"eth0", *IpAddress::parse("fd77:1::4"), 64}).subnet().text(), "fd77:1::/64");
}

TEST(Interfaces, whatever_this_machine_has_is_listed_whole) {
    const auto found = running_interfaces();
    ASSERT_TRUE(found) << found.error().text();
    for (const Interface& interface : *found) {
        EXPECT_FALSE(interface.name.empty());
        EXPECT_TRUE(is_for_others(interface.address)) << interface.text();
        EXPECT_LE(interface.bits, interface.address.size * 8);
        EXPECT_TRUE(interface.subnet().holds(interface.address)) << interface.text();
    }
}

} // namespace
} // namespace kumi::base
