// What group/settings.hpp promises. Settings depend on no world, so this runs once.

#include "kumi/group/settings.hpp"

#include <gtest/gtest.h>

namespace kumi::group_test {
namespace {

using group::parse_settings;

TEST(SettingsPromise, costs_are_in_microseconds_and_megabytes_a_second) {
    const auto settings = parse_settings("overhead=0.2,latency=1.2,bandwidth=10000,way=circulant");
    ASSERT_TRUE(settings) << settings.error().text();
    ASSERT_TRUE(settings->costs);
    EXPECT_DOUBLE_EQ(settings->costs->overhead_us, 0.2);
    EXPECT_DOUBLE_EQ(settings->costs->latency_us, 1.2);
    EXPECT_DOUBLE_EQ(settings->costs->us_per_byte, 0.0001);
    EXPECT_TRUE(settings->way);
}

TEST(SettingsPromise, what_is_not_given_is_not_set) {
    const auto none = parse_settings("");
    ASSERT_TRUE(none);
    EXPECT_FALSE(none->costs);
    EXPECT_FALSE(none->way);
    const auto way = parse_settings("way=tree");
    ASSERT_TRUE(way) << way.error().text();
    EXPECT_FALSE(way->costs);
    EXPECT_TRUE(way->way);
}

TEST(SettingsPromise, costs_are_given_all_three_or_none_and_whatever_else_is_wrong_is_misuse) {
    for (const char* const text :
         {"overhead=0.2", "overhead=0.2,latency=1.2", "bandwidth=100", "overhead=0,latency=1,bandwidth=1",
          "overhead=-1,latency=1,bandwidth=1", "overhead=nan,latency=1,bandwidth=1",
          "overhead=1,latency=inf,bandwidth=1", "overhead=2,latency=1,bandwidth=1", "overhead=x,latency=1,bandwidth=1",
          "overhead,latency=1,bandwidth=1", "way=", "way=backwards", "speed=5", ",", "overhead=1;latency=2"}) {
        const auto refused = parse_settings(text);
        EXPECT_FALSE(refused) << text;
        if (!refused) {
            EXPECT_EQ(refused.error().code(), ErrorCode::misuse) << text;
            EXPECT_EQ(refused.error().text().find('\n'), std::string::npos) << "one line";
        }
    }
}

} // namespace
} // namespace kumi::group_test
