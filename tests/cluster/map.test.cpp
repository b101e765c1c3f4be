// kumi map --groups: real nodes that say which way multicasts go.
#include "cluster/lab.hpp"

using namespace kumi::cluster_test;

namespace {

Outcome map_groups(const std::string& nodes, const std::string& settings) {
    return run({.words = {kumi_command, "map", "--groups", "-n", nodes}, .environment = {"KUMI_GROUPS=" + settings}});
}

} // namespace

TEST(Map, groups_go_the_ways_that_follow_from_what_is_given) {
    const Outcome outcome = map_groups("5", "overhead=0.2,latency=1.2,bandwidth=10000");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, R"(5 nodes
a message takes 1.2 us, 0.2 us of them to send it, and a byte 0.1 ns (10000 MB/s): as KUMI_GROUPS gives them
all nodes are equally near

          to 2                                to 4                                to 5
    64 B  tree 1.21 us                        tree 1.63 us                        tree 1.84 us
   1 KiB  tree 1.3 us                         tree 2.06 us                        tree 2.36 us
   8 KiB  tree 2.02 us                        tree 5.29 us                        tree 6.31 us
  64 KiB  tree 7.75 us                        circulant (8 KiB) 18.3 us           circulant (8 KiB) 21.7 us
   1 MiB  circulant (32 KiB) 122 us           circulant (16 KiB) 131 us           circulant (16 KiB) 139 us
  16 MiB  circulant (64 KiB) 1.75 ms          circulant (64 KiB) 1.78 ms          circulant (64 KiB) 1.8 ms
)");
}

TEST(Map, groups_go_the_way_that_is_wanted) {
    const Outcome outcome = map_groups("3", "way=scatter_doubling");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 11u) << outcome.out;
    for (std::size_t row = 5; row < lines.size(); ++row)
        EXPECT_TRUE(matches(lines[row], ".*B  scatter_doubling \\([^)]*\\) .*s  *scatter_doubling \\(.*s"))
            << lines[row];
}

TEST(Map, groups_measure_what_messages_take) {
    const Outcome outcome = map_groups("2", "");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    // A busy machine may make no sense.
    EXPECT_TRUE(
        matches(lines_of(outcome.out).at(1), "a message takes [0-9.]+ us, [0-9.]+ us of them to send it, and a byte "
                                             "[0-9.]+ ns \\([0-9]+ MB/s\\): as (measured|usual on such networks)"))
        << outcome.out;
}

TEST(Map, groups_refuse_settings_that_make_no_sense_and_say_what_does) {
    const Outcome outcome = map_groups("3", "way=star");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi run: node [0-9] .* cannot go on: KUMI_GROUPS: way=star: there are tree, "
                                         "binomial, circulant, scatter_ring, scatter_doubling; ending 3 nodes"))
        << outcome.err;
    EXPECT_EQ(outcome.out, "");
}

TEST(Map, needs_a_cluster_file_but_for_groups) {
    const Outcome outcome = run({.words = {kumi_command, "map"}});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi map: --cluster is required; see kumi map --help")) << outcome.err;
}

class MapOfLab : public Lab {};

TEST_F(MapOfLab, groups_know_clusters_and_hosts_of_a_cluster_file) {
    LAB_OR_SKIP();
    const Outcome outcome =
        exec("front", {kumi_command, "map", "--groups", "--cluster", figure3, "--rsh", kumi_command + " lab exec"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto lines = lines_of(outcome.out);
    ASSERT_GE(lines.size(), 4u) << outcome.out;
    EXPECT_EQ(lines[0], "12 nodes");
    EXPECT_EQ(lines[2], "clusters: {0-7} {8-11}");
    EXPECT_EQ(lines[3], "hosts: {0-1} {2-3} {4-5} {6-7} {8} {9} {10} {11}");
}
