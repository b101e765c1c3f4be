#include "kumi/lab/plan/subnet.hpp"

#include <gtest/gtest.h>

namespace kumi::lab {
namespace {

std::vector<IpAddress> addresses(const std::vector<std::string>& texts) {
    std::vector<IpAddress> all;
    for (const std::string& text : texts) all.push_back(*IpAddress::parse(text));
    return all;
}

std::string subnet_text(const std::vector<std::string>& texts) {
    const auto found = subnet_of(addresses(texts));
    return found ? found->text() : found.error().text();
}

std::string free_text(const std::vector<std::string>& texts) {
    const auto members = addresses(texts);
    return highest_free(*subnet_of(members), members).text();
}

TEST(LabSubnet, is_24_or_64_bits_where_that_is_enough) {
    EXPECT_EQ(subnet_text({"10.77.1.1", "10.77.1.4"}), "10.77.1.0/24");
    EXPECT_EQ(subnet_text({"fd77::1", "fd77::2:1"}), "fd77::/64");
}

TEST(LabSubnet, grows_until_all_are_addresses_of_hosts) {
    EXPECT_EQ(subnet_text({"10.77.1.1", "10.77.9.4"}), "10.77.0.0/20");
    EXPECT_EQ(subnet_text({"10.0.0.1", "10.255.0.1"}), "10.0.0.0/8");
    EXPECT_EQ(subnet_text({"10.77.0.255", "10.77.0.1"}), "10.77.0.0/23") << "in a /24 that one means all hosts";
    EXPECT_EQ(subnet_text({"fd77::1", "fd77:0:0:1::1"}), "fd77::/63");
}

TEST(LabSubnet, has_room_for_one_more) {
    std::vector<std::string> full;
    for (int i = 1; i < 255; ++i) full.push_back(fmt::format("10.77.0.{}", i));
    EXPECT_EQ(subnet_text(full), "10.77.0.0/23");
    full.pop_back();
    EXPECT_EQ(subnet_text(full), "10.77.0.0/24");
    EXPECT_EQ(free_text(full), "10.77.0.254");
}

TEST(LabSubnet, says_what_is_wrong_with_the_addresses) {
    EXPECT_EQ(subnet_text({"10.0.0.1", "fd77::1"}),
              "10.0.0.1 and fd77::1 do not understand each other; use IPv4 or IPv6");
    EXPECT_EQ(subnet_text({"fd77::1", "fd77:0::1"}), "the address fd77::1 is there twice");
    EXPECT_EQ(subnet_text({"10.0.0.1", "192.168.0.1"}).find("10.0.0.1 to 192.168.0.1 are in no common subnet"), 0u);
}

TEST(LabSubnet, the_highest_free_address_is_nobodys) {
    EXPECT_EQ(free_text({"10.77.1.1"}), "10.77.1.254");
    EXPECT_EQ(free_text({"10.77.1.254", "10.77.1.252", "10.77.1.253"}), "10.77.1.251");
    EXPECT_EQ(free_text({"10.77.0.1", "10.77.1.254"}), "10.77.1.253");
    EXPECT_EQ(free_text({"fd77::1"}), "fd77::fffe");
    EXPECT_EQ(free_text({"fd77::fffe"}), "fd77::fffd");
}

TEST(LabSubnet, ends_at_8_and_16_bits) {
    EXPECT_EQ(subnet_text({"10.0.0.1", "11.0.0.1"}).find("10.0.0.1 to 11.0.0.1 are in no common subnet"), 0u)
        << "a /7 would hold both";
    EXPECT_EQ(subnet_text({"fd77::1", "fd77:ffff::1"}), "fd77::/16");
    EXPECT_EQ(subnet_text({"fd76::1", "fd77::1"}).find("fd76::1 to fd77::1 are in no common subnet"), 0u)
        << "a /15 would hold both";
}

TEST(LabSubnet, the_address_of_a_subnet_is_no_hosts) {
    EXPECT_EQ(subnet_text({"10.77.1.0", "10.77.1.1"}), "10.77.0.0/23");
    EXPECT_EQ(subnet_text({"10.77.0.0"}), "10.76.0.0/15");
    EXPECT_EQ(subnet_text({"fd77::", "fd77::1"}).find("fd77:: to fd77::1 are in no common subnet"), 0u);
    EXPECT_EQ(subnet_text({"fd77::ffff:ffff:ffff:ffff"}), "fd77::/64") << "IPv6 has no address of all hosts";
}

TEST(LabSubnet, the_highest_free_address_borrows_across_bytes) {
    std::vector<std::string> all;
    for (int i = 0; i < 255; ++i) all.push_back(fmt::format("10.77.1.{}", i)); // 10.77.1.255 means all hosts
    all.push_back("10.77.0.1");
    EXPECT_EQ(subnet_text(all), "10.77.0.0/23");
    EXPECT_EQ(free_text(all), "10.77.0.255");
}

} // namespace
} // namespace kumi::lab
