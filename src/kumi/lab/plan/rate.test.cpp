#include "kumi/lab/plan/rate.hpp"

#include <gtest/gtest.h>

namespace kumi::lab {
namespace {

TEST(LabRate, a_percentage_is_between_0_and_100) {
    EXPECT_EQ(*parse_percent("0"), 0);
    EXPECT_EQ(*parse_percent("0.25"), 0.25);
    EXPECT_EQ(*parse_percent("100"), 100);
    for (const char* wrong : {"", "101", "-0", "-1", "1%", "inf", "nan", "x"})
        EXPECT_FALSE(parse_percent(wrong)) << wrong;
}

TEST(LabRate, a_burst_is_a_millisecond_or_two_packets) {
    EXPECT_EQ(burst_bytes(1'000'000'000, 1500), 125'000u);
    EXPECT_EQ(burst_bytes(1'000'000, 1500), 2u * (1500 + 64));
}

TEST(LabRate, the_ends_of_percentages_are) {
    EXPECT_FALSE(parse_percent("100.001"));
    EXPECT_EQ(*parse_percent("99.999"), 99.999);
}

TEST(LabRate, a_burst_holds_a_packet_at_every_rate) {
    for (const std::uint32_t mtu : {576u, 1500u, 9000u})
        for (const std::uint64_t bits :
             {std::uint64_t{1000}, std::uint64_t{25'000'000}, std::uint64_t{1'000'000'000'000}}) {
            EXPECT_GE(burst_bytes(bits, mtu), 2u * (mtu + 64)) << mtu << " " << bits;
            EXPECT_GE(burst_bytes(bits, mtu), bits / 8000) << mtu << " " << bits;
        }
}

} // namespace
} // namespace kumi::lab
