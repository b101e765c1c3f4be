// What kumi run shows of what nodes counted.
#include "cluster/command.hpp"

using namespace kumi::cluster_test;

namespace {

/// What came out from the heading on: tables come last.
std::vector<std::string> tables_in(const std::string& out) {
    const auto at = out.find("what the nodes counted\n");
    EXPECT_NE(at, std::string::npos) << out;
    return at == std::string::npos ? Words{} : lines_of(out.substr(at));
}

bool has_line(const std::vector<std::string>& lines, const std::string& pattern) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return matches(line, pattern); });
}

} // namespace

TEST(Stats, each_node_each_pair_and_the_total_are_shown) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", "--stats", example("02_ring"), "1000"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    const auto lines = tables_in(outcome.out);
    EXPECT_TRUE(has_line(lines, "  shmem +messages_sent +bytes_sent.*")) << outcome.out;
    for (const char* node : {"0", "1", "2"})
        EXPECT_TRUE(has_line(lines, std::string("  node ") + node + " +1,000 +16,000.*")) << outcome.out;
    EXPECT_TRUE(has_line(lines, "  total +3,000 +48,000.*")) << outcome.out;
    EXPECT_TRUE(has_line(lines, "  shmem, by pair +messages_sent +bytes_sent")) << outcome.out;
    for (const char* pair : {"0 -> 1", "1 -> 2", "2 -> 0"})
        EXPECT_TRUE(has_line(lines, std::string("  ") + pair + " +1,000 +16,000")) << outcome.out;
    EXPECT_FALSE(contains(outcome.out, "0 -> 2")) << outcome.out;
}

TEST(Stats, messages_are_counted_by_size_with_the_time_that_each_took_and_nodes_with_their_processor_time) {
    const Outcome outcome = run({.words = kumi_run({"-n", "2", "--stats", example("02_ring"), "1000"})});
    EXPECT_EQ(outcome.code, 0);
    const auto lines = tables_in(outcome.out);
    EXPECT_TRUE(has_line(lines, "  shmem, by size +messages sent +share +ns each")) << outcome.out;
    EXPECT_TRUE(has_line(lines, "  up to 64 B +2,000 +100[.]0% +[1-9][0-9,]*") ||
                has_line(lines, "  up to 16 B +2,000 +[0-9.]+% +[1-9][0-9,]*"))
        << outcome.out;
    EXPECT_TRUE(has_line(lines, "  process +processor_us")) << outcome.out;
}

TEST(Stats, large_jobs_show_no_pairs) {
    const Outcome outcome = run({.words = kumi_run({"-n", "9", "--stats", example("02_ring"), "2"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_FALSE(contains(outcome.out, "->")) << outcome.out;
    const auto lines = tables_in(outcome.out);
    EXPECT_TRUE(has_line(lines, "  node 8 +2 +32.*")) << outcome.out;
    EXPECT_TRUE(has_line(lines, "  total +18 +288.*")) << outcome.out;
}

TEST(Stats, a_job_that_sent_nothing_says_so_and_a_node_started_by_hand_keeps_quiet) {
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "2", "--stats"}, {"join"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(has_line(tables_in(outcome.out), "  always 0: messages_sent, bytes_sent, .*")) << outcome.out;
    EXPECT_EQ(run({.words = {program("actor"), "join"}}).out, "");
}

TEST(Stats, they_go_together_with_traffic) {
    const Outcome outcome = run({.words = kumi_run({"-n", "2", "--traffic", "--stats", example("02_ring"), "5"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(contains(outcome.out, "who talks to whom")) << outcome.out;
    EXPECT_TRUE(has_line(tables_in(outcome.out), "  total +10 +160.*")) << outcome.out;
}

TEST(Stats, a_job_that_failed_shows_what_those_counted_who_could_still_say_so) {
    const Outcome outcome =
        run({.words = kumi_run_actor({"-n", "2", "--stats"}, {"ignore=TERM", "join", "1:sleep=300", "1:exit=3"})});
    EXPECT_EQ(outcome.code, 3);
    const auto lines = tables_in(outcome.out);
    EXPECT_TRUE(has_line(lines, "  shmem.*")) << outcome.out;
    EXPECT_FALSE(has_line(lines, "  node 0: no report")) << outcome.out;
    EXPECT_TRUE(has_line(lines, "  node 1: no report")) << outcome.out;
}

TEST(Stats, a_job_that_failed_before_anybody_could_report_shows_no_tables) {
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "2", "--stats"}, {"join", "1:exit=3", "wait"})});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.out, "");
}

TEST(Stats, programs_that_do_not_join_report_nothing) {
    const Outcome outcome = run({.words = kumi_run({"-n", "2", "--no-join", "--stats", "true"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "what the nodes counted\n  no node reported: only those that join and leave do\n");
}
