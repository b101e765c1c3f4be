#include "kumi/device/udp/address.hpp"

#include <gtest/gtest.h>

namespace kumi::device::udp {
namespace {

Address parsed(std::string_view text, std::uint16_t port) {
    const auto address = Address::parse(text, port);
    EXPECT_TRUE(address) << address.error().text();
    return address ? *address : Address{};
}

TEST(UdpAddress, numeric_addresses_are_read_and_written_back) {
    EXPECT_EQ(parsed("10.0.0.1", 7000).text(), "10.0.0.1:7000");
    EXPECT_EQ(parsed("fd00::1", 7000).text(), "[fd00::1]:7000");
    EXPECT_EQ(parsed("fd00:0:0::0001", 1).host_text(), "fd00::1");
    EXPECT_EQ(parsed("10.0.0.1", 7000).family(), AF_INET);
    EXPECT_EQ(parsed("::1", 65'535).family(), AF_INET6);
    EXPECT_EQ(parsed("::1", 65'535).port(), 65'535);
    EXPECT_EQ(parsed("10.0.0.1", 0).port(), 0);
}

TEST(UdpAddress, what_is_no_address_is_refused_with_an_example_of_one) {
    for (const char* text :
         {"", "localhost", "10.0.0", "10.0.0.256", "10.0.0.1:7000", "[::1]", "fd00::1::2", "10.0.0.1%lo", " ::1"}) {
        const auto address = Address::parse(text, 1);
        ASSERT_FALSE(address) << text;
        EXPECT_EQ(address.error().text(), std::string(text) + ": write a numeric address such as 10.0.0.1 or fd00::1");
    }
}

TEST(UdpAddress, the_interface_of_a_link_local_address_is_kept_or_named_when_there_is_none) {
    EXPECT_NE(parsed("fe80::1%lo", 1).wire().scope, 0u);
    for (const char* text : {"fe80::1%kumi-no", "fe80::1%"}) {
        const auto address = Address::parse(text, 1);
        ASSERT_FALSE(address);
        EXPECT_EQ(address.error().text(),
                  std::string(text) + ": there is no interface " + (text + sizeof "fe80::1%" - 1));
    }
}

TEST(UdpAddress, what_goes_to_other_nodes_comes_back_the_same) {
    for (const char* text : {"10.1.2.3", "fd00:1:2:3::4", "fe80::1%lo"}) {
        const Address before = parsed(text, 7000);
        Address after;
        ASSERT_TRUE(Address::from_wire(before.wire(), after)) << text;
        EXPECT_EQ(after, before);
        EXPECT_EQ(after.text(), before.text());
        EXPECT_EQ(after.wire().scope, before.wire().scope);
        EXPECT_EQ(after.bytes(), before.bytes());
    }
}

TEST(UdpAddress, nonsense_from_another_node_is_refused) {
    Address address;
    EXPECT_FALSE(Address::from_wire({}, address));
    Address::Wire wire = parsed("10.0.0.1", 7000).wire();
    for (const int family : {0, 2, 5, 10, 65'535}) {
        wire.family = static_cast<std::uint16_t>(family);
        EXPECT_FALSE(Address::from_wire(wire, address)) << family;
    }
    wire.family = 4;
    wire.port = 0;
    EXPECT_FALSE(Address::from_wire(wire, address));
}

TEST(UdpAddress, another_port_is_another_address_on_the_same_host) {
    for (const char* text : {"10.0.0.1", "fd00::1"}) {
        const Address first = parsed(text, 1);
        const Address second = first.with_port(2);
        EXPECT_EQ(second.port(), 2);
        EXPECT_EQ(second.host_text(), first.host_text());
        EXPECT_FALSE(first == second);
        EXPECT_EQ(second.with_port(1), first);
    }
    EXPECT_FALSE(parsed("10.0.0.1", 1) == parsed("10.0.0.2", 1));
}

TEST(UdpAddress, only_the_zero_address_is_any) {
    EXPECT_TRUE(parsed("0.0.0.0", 1).is_any());
    EXPECT_TRUE(parsed("::", 1).is_any());
    EXPECT_FALSE(parsed("0.0.0.1", 1).is_any());
    EXPECT_FALSE(parsed("::1", 1).is_any());
}

TEST(UdpAddress, an_address_is_up_where_this_host_has_it) {
    EXPECT_TRUE(is_up(parsed("127.0.0.1", 7)));
    EXPECT_TRUE(is_up(parsed("127.200.3.4", 7))) << "all of these are this host's";
    EXPECT_FALSE(is_up(parsed("192.0.2.1", 7))) << "which nobody has: it is for documents";
    EXPECT_FALSE(is_up(parsed("2001:db8::1", 7)));
}

} // namespace
} // namespace kumi::device::udp
