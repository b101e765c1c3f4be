#include "kumi/cluster/rate.hpp"

#include <gtest/gtest.h>

namespace kumi::cluster {
namespace {

TEST(Rate, is_a_number_and_a_unit_or_none) {
    EXPECT_EQ(*parse_rate("100mbit"), 100'000'000u);
    EXPECT_EQ(*parse_rate("2.5gbit"), 2'500'000'000u);
    EXPECT_EQ(*parse_rate("64kbit"), 64'000u);
    EXPECT_EQ(*parse_rate("none"), 0u);
    for (const char* wrong : {"", "fast", "100", "mbit", "-1mbit", "0mbit", "1e3gbit", "1001gbit", "nangbit", "100mbit ", "1mbps"}) {
        const auto refused = parse_rate(wrong);
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().text(), fmt::format("\"{}\" is no rate; write it like 100mbit, from 1kbit to 1000gbit, or none", wrong));
    }
}

TEST(Rate, a_percentage_is_between_0_and_100) {
    EXPECT_EQ(*parse_percent("0"), 0);
    EXPECT_EQ(*parse_percent("0.25"), 0.25);
    EXPECT_EQ(*parse_percent("100"), 100);
    for (const char* wrong : {"", "101", "-0", "-1", "1%", "inf", "nan", "x"}) EXPECT_FALSE(parse_percent(wrong)) << wrong;
}

TEST(Rate, a_burst_is_a_millisecond_or_two_packets) {
    EXPECT_EQ(burst_bytes(1'000'000'000, 1500), 125'000u);
    EXPECT_EQ(burst_bytes(1'000'000, 1500), 2u * (1500 + 64));
}

TEST(Rate, the_ends_of_what_is_allowed_are) {
    EXPECT_EQ(*parse_rate("1kbit"), 1000u);
    EXPECT_EQ(*parse_rate("0.001mbit"), 1000u);
    EXPECT_EQ(*parse_rate("1000gbit"), 1'000'000'000'000u);
    for (const char* wrong : {"0.999kbit", "1000.001gbit", "1000001mbit", "none ", "None"})
        EXPECT_FALSE(parse_rate(wrong)) << wrong;
    EXPECT_FALSE(parse_percent("100.001"));
    EXPECT_EQ(*parse_percent("99.999"), 99.999);
}

TEST(Rate, a_burst_holds_a_packet_at_every_rate) {
    for (const std::uint32_t mtu : {576u, 1500u, 9000u})
        for (const std::uint64_t bits :
             {std::uint64_t{1000}, std::uint64_t{25'000'000}, std::uint64_t{1'000'000'000'000}}) {
            EXPECT_GE(burst_bytes(bits, mtu), 2u * (mtu + 64)) << mtu << " " << bits;
            EXPECT_GE(burst_bytes(bits, mtu), bits / 8000) << mtu << " " << bits;
        }
}

} // namespace
} // namespace kumi::cluster
