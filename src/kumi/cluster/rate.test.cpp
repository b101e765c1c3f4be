#include "kumi/cluster/rate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kumi::cluster {
namespace {

TEST(Rate, is_a_number_and_a_unit_or_none) {
    EXPECT_EQ(*parse_rate("100mbit"), 100'000'000u);
    EXPECT_EQ(*parse_rate("2.5gbit"), 2'500'000'000u);
    EXPECT_EQ(*parse_rate("64kbit"), 64'000u);
    EXPECT_EQ(*parse_rate("none"), 0u);
    for (const char* wrong :
         {"", "fast", "100", "mbit", "-1mbit", "0mbit", "1e3gbit", "1001gbit", "nangbit", "100mbit ", "1mbps"}) {
        const auto refused = parse_rate(wrong);
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().text(),
                  fmt::format("\"{}\" is no rate; write it like 100mbit, from 1kbit to 1000gbit, or none", wrong));
    }
}

TEST(Rate, the_ends_of_what_is_allowed_are) {
    EXPECT_EQ(*parse_rate("1kbit"), 1000u);
    EXPECT_EQ(*parse_rate("0.001mbit"), 1000u);
    EXPECT_EQ(*parse_rate("1000gbit"), 1'000'000'000'000u);
    for (const char* wrong : {"0.999kbit", "1000.001gbit", "1000001mbit", "none ", "None"})
        EXPECT_FALSE(parse_rate(wrong)) << wrong;
}

} // namespace
} // namespace kumi::cluster
