// What a newcomer tries first.
#include "cluster/command.hpp"

using namespace kumi::cluster_test;

TEST(Examples, hello_with_4_nodes_prints_4_greetings) {
    expect_hello(run({.words = kumi_run({"-n", "4", example("01_hello")})}));
}

TEST(Examples, hello_started_by_hand_is_a_job_of_one_node) {
    const Outcome outcome = run({.words = {example("01_hello")}});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(is_one_line(outcome.out, "hello from node 0 of 1 on [^ ]+"));
}

class Ring : public testing::TestWithParam<long> {};

TEST_P(Ring, the_token_collects_every_number_in_every_round) {
    const long nodes = GetParam();
    const long rounds = 20;
    expect_ring(run({.words = kumi_run({"-n", std::to_string(nodes), example("02_ring"), std::to_string(rounds)})}), nodes, rounds);
}

INSTANTIATE_TEST_SUITE_P(Examples, Ring, testing::Values(1, 2, 5, 16), testing::PrintToStringParamName());

TEST(Examples, ring_works_with_300_nodes) {
    if (sanitized) GTEST_SKIP() << "300 instrumented processes need too much memory";
    const Outcome outcome = run({.words = kumi_run({"-n", "300", example("02_ring"), "2"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(contains(outcome.out, "2 rounds over 300 nodes: token is 89700, ")) << outcome.out;
}

TEST(Examples, pingpong_measures_every_size_up_to_4_megabytes) {
    const Outcome outcome = run({.words = kumi_run({"-n", "2", example("03_pingpong")})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    const auto lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 8u) << outcome.out; // the heading, and 8 B to 2 MiB by eights
    EXPECT_EQ(lines[1].find("         8 "), 0u) << lines[1];
    EXPECT_EQ(lines[7].find("   2097152 "), 0u) << lines[7];
}

TEST(Examples, pingpong_with_3_nodes_says_how_many_it_takes) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", example("03_pingpong")})});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    int summaries = 0;
    int reasons = 0;
    for (const std::string& line : lines_of(outcome.err)) {
        const bool summary =
            matches(line, "kumi run: node [0-2] on [^ ]+ \\(pid [0-9]+\\) exited with code 1(; ending [12] nodes?)?");
        const bool reason = line == "kumi: a ping-pong takes two nodes: kumi run -n 2 ./03_pingpong";
        summaries += summary, reasons += reason;
        EXPECT_TRUE(summary || reason) << line;
    }
    EXPECT_EQ(summaries, 1);
    EXPECT_GE(reasons, 1);
}

TEST(Examples, matrix_measures_between_every_two_nodes) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", example("matrix")})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    const auto lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 5u) << outcome.out; // the heading, three nodes, the letter
    for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(std::count(lines[i].begin(), lines[i].end(), 'S'), 2) << lines[i];
    EXPECT_EQ(lines[4], "  S = shmem");
}

TEST(Examples, steady_finds_nothing_wrong) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", example("steady"), "0.2"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(contains(outcome.out, "0.00 s: to node 2 by shmem\n")) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, " messages, 0 of them wrong; longest pause ")) << outcome.out;
}
