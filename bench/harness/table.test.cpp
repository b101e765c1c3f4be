#include "harness/table.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kumi::bench {
namespace {

/// A goals file for the length of a test.
class Goals : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "kumi-goals-XXXXXX").string();
        const int file = mkstemp(pattern.data());
        ASSERT_GE(file, 0);
        ::close(file);
        path_ = pattern;
    }
    void TearDown() override { std::filesystem::remove(path_); }

    /// The report on `table`, or the error.
    std::string check(const Table& table, const std::string& goals) {
        std::ofstream(path_) << goals;
        const auto report = table.check(path_, missed_);
        return report ? *report : report.error().text();
    }
    int missed() const { return missed_; }

private:
    std::string path_;
    int missed_ = -1;
};

Table two_rows() {
    Table table({{"time", "ns", true, "less is better"}, {"speed", "MB/s", false, "more is better"}},
                {"slow", "quick"});
    for (const double value : {100.0, 90.0, 500.0}) table.add("kumi", "time", value); // median 100
    table.add("limit", "time", 80);
    table.add("slow", "time", 400);
    table.add("quick", "time", 200);
    table.add("kumi", "speed", 1000);
    table.add("slow", "speed", 500);
    return table;
}

TEST_F(Goals, hold_the_median_against_limit_best_peer_named_peer_and_value) {
    const std::string report =
        check(two_rows(), "[time]\nlimit_at_most = 1.25\npeer_at_most = 0.5\nslow_at_most = 0.25\n"
                          "[speed]\npeer_at_least = 2.0\nvalue_at_least = 1000\n");
    EXPECT_EQ(missed(), 0) << report;
    EXPECT_NE(report.find("1.25 of limit; goal: at most 1.25"), std::string::npos) << report;
    EXPECT_NE(report.find("0.50 of the best peer"), std::string::npos) << report;
    EXPECT_NE(report.find("0.25 of slow"), std::string::npos) << report;
    EXPECT_NE(report.find("1000.00 MB/s; goal: at least 1000.00"), std::string::npos) << report;
}

TEST_F(Goals, that_are_just_not_reached_are_missed) {
    const std::string report = check(two_rows(), "[time]\nlimit_at_most = 1.24\nquick_at_most = 0.49\n"
                                                 "[speed]\nslow_at_least = 2.01\nvalue_at_most = 999\n");
    EXPECT_EQ(missed(), 4) << report;
    EXPECT_EQ(report.find("reached"), std::string::npos) << report;
}

TEST_F(Goals, may_be_so_much_above_the_limit) {
    EXPECT_NE(check(two_rows(), "[time]\nlimit_plus_at_most = 20\n").find("20.00 ns above limit"), std::string::npos);
    EXPECT_EQ(missed(), 0);
    check(two_rows(), "[time]\nlimit_plus_at_most = 19\n");
    EXPECT_EQ(missed(), 1);
}

TEST_F(Goals, against_what_was_not_measured_are_missed_and_say_so) {
    const std::string report = check(two_rows(), "[speed]\nquick_at_least = 0.1\nlimit_at_least = 0.1\n");
    EXPECT_EQ(missed(), 2) << report;
    EXPECT_NE(report.find("not measured of quick"), std::string::npos) << report;
    EXPECT_NE(report.find("not measured of limit"), std::string::npos) << report;
}

TEST_F(Goals, of_a_row_that_went_wrong_once_are_missed_whatever_else_was_measured) {
    Table table = two_rows();
    table.strike("kumi", "time");
    table.add("kumi", "time", 1);
    EXPECT_NE(check(table, "[time]\nvalue_at_most = 100\n[speed]\nvalue_at_least = 1000\n").find("not measured ns"),
              std::string::npos);
    EXPECT_EQ(missed(), 1);
}

TEST_F(Goals, hold_against_a_peer_that_has_settings_with_the_best_of_them_row_by_row) {
    Table table({{"time", "ns", true, ""}, {"speed", "MB/s", false, ""}}, {"peer", "peers"});
    for (const char* row : {"time", "speed"}) table.add("kumi", row, 100);
    for (const double value : {400.0, 10.0, 300.0}) table.add("peer#0", "time", value); // median 300
    table.add("peer#1", "time", 200);
    table.add("peer#0", "speed", 50);
    table.add("peer#1", "speed", 25);
    const std::string report = check(table, "[time]\npeer_at_most = 0.5\n[speed]\npeer_at_least = 2.0\n");
    EXPECT_EQ(missed(), 0) << report;
    EXPECT_NE(report.find("0.50 of the best peer"), std::string::npos) << report;
    EXPECT_NE(report.find("2.00 of the best peer"), std::string::npos) << report;
}

TEST_F(Goals, for_rows_of_other_benchmarks_are_left_alone) {
    EXPECT_EQ(check(two_rows(), "[elsewhere]\nvalue_at_most = 1\n"), "");
    EXPECT_EQ(missed(), 0);
}

TEST_F(Goals, that_cannot_be_read_are_an_error) {
    EXPECT_NE(check(two_rows(), "[time]\nlimit_below = 1\n").find("limit_below is no goal"), std::string::npos);
    EXPECT_NE(check(two_rows(), "[time]\nlimit_at_most = \"much\"\n").find("limit_at_most is no goal"),
              std::string::npos);
    EXPECT_NE(check(two_rows(), "[time\n").find("line 1"), std::string::npos);
}

TEST(TableText, names_each_peer_that_was_measured_and_each_note_once) {
    Table table = two_rows();
    table.note("quick: was not there");
    table.note("quick: was not there");
    const std::string text = table.text();
    EXPECT_NE(text.find("slow 400.0  quick 200.0"), std::string::npos) << text;
    const std::size_t first = text.find("note: quick: was not there");
    EXPECT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find("note:", first + 1), std::string::npos) << text;
}

} // namespace
} // namespace kumi::bench
