// What a newcomer tries first.
#include "cluster/command.hpp"

#include <map>

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
    expect_ring(run({.words = kumi_run({"-n", std::to_string(nodes), example("02_ring"), std::to_string(rounds)})}),
                nodes, rounds);
}

INSTANTIATE_TEST_SUITE_P(Examples, Ring, testing::Values(1, 2, 5, 16), testing::PrintToStringParamName());

TEST(Examples, ring_works_with_300_nodes) {
    if (sanitized) KUMI_SKIP(skips::plain_build_only); // 300 instrumented processes need too much memory
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

TEST(Examples, active_messages_fill_and_ask_a_table_on_all_nodes) {
    for (const char* const nodes : {"1", "4"}) {
        const Outcome outcome = run({.words = kumi_run({"-n", nodes, example("04_active_messages")})});
        EXPECT_EQ(outcome.code, 0);
        EXPECT_EQ(outcome.err, "");
        EXPECT_EQ(outcome.out, std::string("1000 squares in ") + nodes + " nodes add up to 332833500\n");
    }
}

TEST(Examples, remote_memory_is_read_and_written_on_all_nodes) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", example("05_remote_memory")})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    auto lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 7u) << outcome.out;
    EXPECT_EQ(std::ranges::count_if(
                  lines, [](const std::string& line) { return matches(line, "node [012] greets node [012]"); }),
              3);
    for (const char* const ticket : {"0", "1", "2"})
        EXPECT_EQ(std::ranges::count_if(lines,
                                        [&](const std::string& line) {
                                            return matches(line, std::string("node [012] has ticket ") + ticket);
                                        }),
                  1)
            << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "node 1 was told: node 0 greets node 1\n")) << outcome.out;
}

/// Whatever the number of nodes and threads, with overlap and without: the same cells, to the last bit.
TEST(Examples, jacobi_computes_the_same_on_any_number_of_nodes_and_threads) {
    std::string expected;
    for (const char* const device : {"shmem", "udp"})
        for (const char* const nodes : {"1", "2", "5"})
            for (const char* const threads : {"1", "3"})
                for (const char* const mode : {"overlap", "plain"}) {
                    const Outcome outcome =
                        run({.words = kumi_run({"-n", nodes, example("06_jacobi"), "60", "40", threads, mode}),
                             .environment = {std::string("KUMI_DEVICE=") + device}});
                    EXPECT_EQ(outcome.code, 0);
                    EXPECT_EQ(outcome.err, "");
                    const auto lines = lines_of(outcome.out);
                    ASSERT_EQ(lines.size(), 2u) << outcome.out;
                    EXPECT_TRUE(
                        contains(lines[0], std::string("nodes ") + nodes + ", threads " + threads + ", " + mode + ": "))
                        << lines[0];
                    EXPECT_TRUE(
                        matches(lines[1], "60 x 60 cells, 40 steps: last change 0\\.[0-9]+, checksum [0-9a-f]{16}"))
                        << lines[1];
                    if (expected.empty()) expected = lines[1];
                    EXPECT_EQ(lines[1], expected) << lines[0];
                }
}

TEST(Examples, jacobi_works_where_a_node_has_a_single_row) {
    std::string expected;
    for (const char* const nodes : {"1", "5"}) {
        const Outcome outcome = run({.words = kumi_run({"-n", nodes, example("06_jacobi"), "5", "100"})});
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        const auto lines = lines_of(outcome.out);
        ASSERT_EQ(lines.size(), 2u) << outcome.out;
        if (expected.empty()) expected = lines[1];
        EXPECT_EQ(lines[1], expected);
    }
    EXPECT_EQ(run({.words = kumi_run({"-n", "6", example("06_jacobi"), "5", "100"})}).code, 1);
}

TEST(Examples, invoke_brings_back_answers_and_what_was_thrown) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", example("07_invoke")})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    const auto lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 9u) << outcome.out;
    EXPECT_EQ(lines[0], "2 and");
    EXPECT_EQ(lines[4], "3 the");
    EXPECT_EQ(lines[5], "an eighth is 0.125");
    for (std::size_t node = 0; node < 3; ++node)
        EXPECT_TRUE(
            matches(lines[6 + node], "node " + std::to_string(node) + " on [^ ]+: function divide threw: 1 by nothing"))
            << lines[6 + node];
}

TEST(Examples, heat_settles_after_as_many_steps_on_any_number_of_nodes_that_divides_the_rod_alike) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", example("10_heat")})});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    // At rest the heat falls evenly from 100 to 0: 84 %, 52 % and 20 % of the rod's 25 steps are left there.
    EXPECT_TRUE(is_one_line(outcome.out, "at rest after [0-9]+ steps; in the pieces' middles: 84[.]0 5[12][.][0-9] "
                                         "(19[.][0-9]|20[.]0)"));
}

TEST(Examples, steering_tells_and_asks_other_workers_each_time) {
    const Outcome outcome = run({.words = kumi_run({"-n", "4", example("08_steering"), "12"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    const auto lines = lines_of(outcome.out);
    ASSERT_EQ(lines.size(), 13u) << outcome.out;
    EXPECT_TRUE(contains(lines[0], "step 0: 0-2 compute, ")) << lines[0];
    EXPECT_TRUE(contains(lines[11], "step 11: 1-3 compute, ")) << lines[11];
    EXPECT_TRUE(matches(lines[12], "[0-9]+ steps in time, [0-9]+ late")) << lines[12];
}

class Nicam : public testing::TestWithParam<const char*> {};

/// A row of docs/nicam.md each.
TEST_P(Nicam, every_primitive_of_the_paper_works) {
    const std::map<std::string, std::vector<std::string>> rows{
        {"init", {"nicam_init", "nicam_lock_memory"}},
        {"transfer", {"nicam_bcopy", "nicam_sync", "nicam_write1"}},
        {"notify", {"nicam_bcopy_notify", "nicam_bcopy_countup", "nicam_set_counter"}},
        {"broadcast", {"nicam_bcast", "nicam_bcast_discard"}},
        {"barrier", {"nicam_barrier"}},
        {"messages", {"nicam_bcopy_dst", "nicam_bcopy_src"}}};
    for (const auto& [group, primitives] : rows) {
        const Outcome outcome = run({.words = kumi_run({"-n", "5", example("nicam_" + group)}),
                                     .environment = {std::string("KUMI_DEVICE=") + GetParam()}});
        EXPECT_EQ(outcome.code, 0);
        EXPECT_EQ(outcome.err, "");
        std::string lines;
        for (const std::string& primitive : primitives) lines += primitive + " works\n";
        EXPECT_EQ(outcome.out, lines);
    }
}

INSTANTIATE_TEST_SUITE_P(Examples, Nicam, testing::Values("shmem", "udp", "composite"),
                         [](const testing::TestParamInfo<const char*>& device) { return std::string(device.param); });
