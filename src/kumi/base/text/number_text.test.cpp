#include "kumi/base/text/number_text.hpp"

#include <cstdint>
#include <gtest/gtest.h>

namespace kumi::base {
namespace {

TEST(NumberText, is_a_number_only_if_all_of_it_is) {
    EXPECT_EQ(number_in<std::uint32_t>("42"), 42u);
    EXPECT_EQ(number_in<int>("-7"), -7);
    EXPECT_EQ(number_in<double>("0.5"), 0.5);
    for (const char* bad : {"", " 1", "1 ", "1x", "x", "-1", "+1", "4294967296"})
        EXPECT_FALSE(number_in<std::uint32_t>(bad)) << bad;
}

} // namespace
} // namespace kumi::base
