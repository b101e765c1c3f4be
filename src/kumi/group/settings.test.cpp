#include "kumi/group/settings.hpp"

#include <gtest/gtest.h>

namespace kumi::group {
namespace {

TEST(GroupSettings, costs_and_a_way_are_read_in_any_order) {
    const auto all = parse_settings("way=scatter_ring,bandwidth=10000,overhead=0.2,latency=1.2");
    ASSERT_TRUE(all) << all.error().text();
    EXPECT_EQ(all->way, Way::scatter_ring);
    ASSERT_TRUE(all->costs);
    EXPECT_DOUBLE_EQ(all->costs->overhead_us, 0.2);
    EXPECT_DOUBLE_EQ(all->costs->latency_us, 1.2);
    EXPECT_DOUBLE_EQ(all->costs->us_per_byte, 0.0001);
    EXPECT_EQ(all->costs->origin, Origin::given);

    const auto way = parse_settings("way=tree");
    ASSERT_TRUE(way);
    EXPECT_EQ(way->way, Way::tree);
    EXPECT_FALSE(way->costs);

    EXPECT_TRUE(parse_settings("overhead=1,latency=1,bandwidth=1")); // all of a latency may be overhead

    const auto none = parse_settings("");
    ASSERT_TRUE(none);
    EXPECT_FALSE(none->way || none->costs);
}

TEST(GroupSettings, what_makes_no_sense_is_refused_with_what_would) {
    const auto refused = [](std::string_view text) {
        const auto settings = parse_settings(text);
        return settings ? "" : settings.error().text();
    };
    EXPECT_EQ(refused("way=star"), "way=star: there are tree, binomial, circulant, scatter_ring, scatter_doubling");
    EXPECT_EQ(refused("way=tree,speed=9"),
              "speed=9: say overhead=US, latency=US, bandwidth=MB or way=NAME, with commas between");
    EXPECT_EQ(refused("latency"), "latency: latency is a number above 0");
    for (const char* text :
         {"latency=", "latency=fast", "latency=-1", "latency=0", "latency=nan", "latency=inf", "latency=1us"})
        EXPECT_NE(refused(text).find("latency is a number above 0"), std::string::npos) << text;
    EXPECT_EQ(refused("overhead=0.2,latency=1.2"), "overhead, latency and bandwidth go together: give all three");
    EXPECT_EQ(refused("overhead=2,latency=1,bandwidth=1000"), "overhead=2 is part of latency=1, and cannot be more");
}

} // namespace
} // namespace kumi::group
