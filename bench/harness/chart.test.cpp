#include "harness/chart.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace kumi::bench {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += what.size()) ++found;
    return found;
}

TEST(Chart, every_curve_is_a_line_with_marks_inside_of_the_frame) {
    const std::string svg =
        chart("some title", "members", "us", {{"one", {{8, 3.5}, {16, 4}, {256, 110}}}, {"two", {{8, 30}, {256, 9}}}});
    EXPECT_EQ(count(svg, "<polyline"), 2u);
    EXPECT_EQ(count(svg, "<circle"), 5u);
    EXPECT_EQ(count(svg, "some title"), 1u);
    EXPECT_NE(svg.find("points='70.0,"), svg.npos); // 8 is at the left,
    EXPECT_NE(svg.find("cx='560.0'"), svg.npos);    // 256 at the right,
    EXPECT_NE(svg.find(">1000</text>"), svg.npos);  // and 110 below the next power of ten
    EXPECT_EQ(svg.find("nan"), svg.npos);
}

TEST(Chart, a_measured_curve_has_the_medians_of_the_rows_that_were_measured) {
    Table table({{"a.2", "us", true, ""}, {"a.4", "us", true, ""}, {"a.8", "us", true, ""}}, {"other"});
    for (const double value : {7.0, 5.0, 6.0}) table.add("kumi", "a.2", value);
    table.add("kumi", "a.8", 9);
    table.add("other", "a.4", 3);
    const Curve curve = measured_curve(table, "kumi", "Kumi", {{2, "a.2"}, {4, "a.4"}, {8, "a.8"}});
    EXPECT_EQ(curve.name, "Kumi");
    EXPECT_EQ(curve.points, (std::vector<std::pair<double, double>>{{2, 6}, {8, 9}}));
}

TEST(Chart, one_point_has_room) {
    const std::string svg = chart("", "", "", {{"one", {{8, 100}}}});
    EXPECT_EQ(svg.find("nan"), svg.npos);
    EXPECT_EQ(svg.find("inf"), svg.npos);
    EXPECT_EQ(count(svg, "<circle"), 1u);
}

} // namespace
} // namespace kumi::bench
