#include "kumi/base/text/size_text.hpp"

#include "kumi/base/system/machine.hpp"

#include <gtest/gtest.h>

namespace kumi::base {
namespace {

TEST(SizeText, reads_numbers_with_and_without_units) {
    EXPECT_EQ(*parse_size("4096"), 4096u);
    EXPECT_EQ(*parse_size("64K"), 65536u);
    EXPECT_EQ(*parse_size("16M"), 16u << 20);
    EXPECT_EQ(*parse_size("2G"), std::uint64_t{2} << 30);
}

TEST(SizeText, refuses_what_is_no_size) {
    for (const char* text : {"", "K", "-1", "1.5G", "12X", "12 K", "99999999999999999999", "99999999999T"})
        EXPECT_FALSE(parse_size(text)) << text;
}

TEST(SizeText, writes_sizes_as_people_read_them) {
    EXPECT_EQ(readable_bytes(0), "0 B");
    EXPECT_EQ(readable_bytes(65536), "64 KiB");
    EXPECT_EQ(readable_bytes(1536), "1.5 KiB");
    EXPECT_EQ(readable_bytes(std::uint64_t{5} << 40), "5 TiB");
}

TEST(SizeText, the_largest_size_of_each_unit_is_read_and_one_more_is_refused) {
    EXPECT_EQ(*parse_size("18446744073709551615"), ~std::uint64_t{0});
    EXPECT_FALSE(parse_size("18446744073709551616"));
    const std::pair<const char*, unsigned> units[] = {{"K", 10}, {"M", 20}, {"G", 30}, {"T", 40}};
    for (const auto& [unit, shift] : units) {
        const std::uint64_t most = ~std::uint64_t{0} >> shift;
        const auto size = parse_size(std::to_string(most) + unit);
        ASSERT_TRUE(size) << unit;
        EXPECT_EQ(*size, most << shift);
        EXPECT_FALSE(parse_size(std::to_string(most + 1) + unit)) << unit;
    }
    EXPECT_EQ(*parse_size("0"), 0u);
    EXPECT_FALSE(parse_size("1k"));
    EXPECT_FALSE(parse_size("1KB"));
}

} // namespace
} // namespace kumi::base
