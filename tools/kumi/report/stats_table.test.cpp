#include "report/stats_table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string_view>

namespace kumi::tools {
namespace {

using boot::StatsEntry;
using boot::whole_channel;

StatsEntry entry(std::uint32_t peer, std::string_view name, std::uint64_t value, std::string_view device = "udp") {
    StatsEntry made{};
    made.peer = peer;
    boot::put_text(made.device, device);
    boot::put_text(made.name, name);
    made.value = value;
    return made;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(StatsTable, a_row_for_each_node_and_the_total_with_numbers_to_the_right) {
    const StatsReports reports{{{entry(whole_channel, "packets", 1234567), entry(whole_channel, "resent", 2)}},
                               {{entry(whole_channel, "packets", 999), entry(whole_channel, "resent", 10)}}};
    EXPECT_EQ(draw_stats(reports), "what the nodes counted\n"
                                   "  udp       packets  resent\n"
                                   "  node 0  1,234,567       2\n"
                                   "  node 1        999      10\n"
                                   "  total   1,235,566      12\n");
}

TEST(StatsTable, sizes_are_in_order_with_their_share_and_the_time_of_one) {
    const StatsReports reports{
        {{entry(whole_channel, "messages of size 1048576", 1),
          entry(whole_channel, "nanoseconds of size 1048576", 90000), entry(whole_channel, "messages of size 64", 1000),
          entry(whole_channel, "nanoseconds of size 64", 100000)}},
        {{entry(whole_channel, "messages of size 64", 2000), entry(whole_channel, "nanoseconds of size 64", 500000),
          entry(whole_channel, "messages of size 0", 999), entry(whole_channel, "nanoseconds of size 0", 999)}}};
    EXPECT_EQ(draw_stats(reports), "what the nodes counted\n"
                                   "  udp, by size                messages sent   share     ns each\n"
                                   "  up to 64 B                          3,000   75.0%         200\n"
                                   "  up to 1 MiB                             1    0.0%      90,000\n"
                                   "  larger                                999   25.0%           1\n");
}

TEST(StatsTable, what_is_zero_everywhere_is_only_named) {
    const StatsReports reports{
        {{entry(whole_channel, "stale", 0), entry(whole_channel, "packets", 7), entry(whole_channel, "forged", 0)}}};
    EXPECT_EQ(draw_stats(reports), "what the nodes counted\n"
                                   "  udp     packets\n"
                                   "  node 0        7\n"
                                   "  always 0: stale, forged\n");
}

TEST(StatsTable, nothing_but_zeros_is_no_table) {
    const StatsReports reports{{{entry(whole_channel, "stale", 0)}}, {{entry(whole_channel, "stale", 0)}}};
    EXPECT_EQ(draw_stats(reports), "what the nodes counted\n"
                                   "  udp\n"
                                   "  always 0: stale\n");
}

TEST(StatsTable, pairs_that_had_something_to_do_have_a_row_each) {
    const StatsReports reports{{{entry(0, "resent", 0), entry(1, "resent", 5)}},
                               {{entry(0, "resent", 4000), entry(1, "resent", 0)}}};
    EXPECT_EQ(draw_stats(reports), "what the nodes counted\n"
                                   "  udp, by pair  resent\n"
                                   "  0 -> 1             5\n"
                                   "  1 -> 0         4,000\n"
                                   "  total          4,005\n");
}

TEST(StatsTable, with_more_than_8_nodes_the_pairs_of_a_node_are_one_sum) {
    StatsReports reports(9);
    for (std::uint32_t node = 0; node < 9; ++node) {
        reports[node].emplace();
        for (std::uint32_t peer = 0; peer < 9; ++peer) reports[node]->push_back(entry(peer, "resent", node));
    }
    const std::string text = draw_stats(reports);
    EXPECT_FALSE(contains(text, "->")) << text;
    EXPECT_TRUE(contains(text, "  udp, all peers  resent\n"
                               "  node 0               0\n"
                               "  node 1               9\n"))
        << text;
    EXPECT_TRUE(contains(text, "  node 8              72\n"
                               "  total              324\n"))
        << text;
}

TEST(StatsTable, a_sum_over_peers_that_the_whole_channel_has_is_not_shown_twice) {
    StatsReports reports(9);
    for (std::uint32_t node = 0; node < 9; ++node)
        reports[node] = {entry(whole_channel, "packets", 2), entry(1, "packets", 2), entry(1, "resent", 3)};
    const std::string text = draw_stats(reports);
    EXPECT_TRUE(contains(text, "  udp     packets\n")) << text;
    EXPECT_TRUE(contains(text, "  udp, all peers  resent\n")) << text;
    reports.resize(8);
    EXPECT_TRUE(contains(draw_stats(reports), "  udp, by pair  packets  resent\n")) << draw_stats(reports);
}

TEST(StatsTable, each_device_has_its_own_table) {
    const StatsReports reports{
        {{entry(whole_channel, "packets", 1), entry(whole_channel, "sleeps", 2, "shmem")}},
    };
    EXPECT_EQ(draw_stats(reports), "what the nodes counted\n"
                                   "  udp     packets\n"
                                   "  node 0        1\n"
                                   "  shmem   sleeps\n"
                                   "  node 0       2\n");
}

TEST(StatsTable, a_device_that_counts_nothing_is_named) {
    const StatsReports reports{{{entry(whole_channel, "", 0, "shmem")}}, {{entry(whole_channel, "", 0, "shmem")}}};
    EXPECT_EQ(draw_stats(reports), "what the nodes counted\n"
                                   "  no counters from shmem\n");
}

TEST(StatsTable, nodes_that_did_not_report_are_named) {
    const StatsReports reports{{{entry(whole_channel, "packets", 1)}}, std::nullopt};
    EXPECT_EQ(draw_stats(reports), "what the nodes counted\n"
                                   "  udp     packets\n"
                                   "  node 0        1\n"
                                   "  node 1: no report\n");
    StatsReports many(100);
    many[7].emplace();
    EXPECT_TRUE(contains(draw_stats(many), "  node 8: no report\n  and 91 more: no report\n")) << draw_stats(many);
    EXPECT_EQ(draw_stats(StatsReports(3)), "what the nodes counted\n"
                                           "  no node reported: only those that join and leave do\n");
}

TEST(StatsTable, many_counters_go_on_below) {
    StatsReports reports(1);
    reports[0].emplace();
    for (int i = 0; i < 20; ++i)
        reports[0]->push_back(entry(whole_channel, fmt::format("a_rather_long_name_{}", i), 1));
    const std::string text = draw_stats(reports);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(contains(text, fmt::format("name_{}", i))) << text;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
        EXPECT_LE(text.find('\n', at) - at, 122u) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 5) << text;
}

TEST(StatsTable, a_name_that_fills_its_field_ends_there) {
    StatsEntry full = entry(whole_channel, "", 1);
    std::fill(std::begin(full.name), std::end(full.name), 'x');
    std::fill(std::begin(full.device), std::end(full.device), 'd');
    const std::string text = draw_stats({{{full}}});
    EXPECT_TRUE(contains(text, "  " + std::string(12, 'd') + "  " + std::string(32, 'x') + "\n")) << text;
}

} // namespace
} // namespace kumi::tools
