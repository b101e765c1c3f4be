// kumi bench: that contestants measure something and leave nothing behind; not how fast anything is.
#include "cluster/command.hpp"

using namespace kumi::cluster_test;

namespace {

/// What a contestant that is nothing but sockets reports.
Outcome bare(const std::string& what, const std::string& who, const std::string& network) {
    return run({.words = {kumi_command, "bench-node", "udp", what, who, network, "no-folder"}});
}

} // namespace

class BareSockets : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BareSockets, report_one_figure_between_two_hosts) {
    const auto [what, who] = GetParam();
    const Outcome outcome = bare(what, who, "veth");
    if (outcome.code != 0 && contains(outcome.err, "namespace")) GTEST_SKIP() << outcome.err;
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome.out, "result udp\\." + std::string(what) + "\\.veth [0-9.e+]+"));
}

INSTANTIATE_TEST_SUITE_P(Bench, BareSockets,
                         testing::Values(std::pair("latency.64", "limit"), std::pair("sleeping.64", "tcp"),
                                         std::pair("bulk", "limit"), std::pair("rate.32", "tcp_nagle"),
                                         std::pair("mix", "tcp")),
                         [](const auto& what) {
                             return std::string(what.param.first).substr(0, 3) + what.param.second;
                         });

TEST(Bench, measures_the_rows_that_were_asked_for_and_says_who_was_not_measured) {
    const Outcome outcome = run({.words = {kumi_command, "bench", "udp", "--rows", "udp.rate.32.loopback", "--rounds",
                                           "1", "--against", "tcp,enet,zeromq"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(
        matches(lines_of(outcome.out).at(1), "udp.rate.32.loopback .* tcp_nodelay [0-9.]+  tcp_nagle [0-9.]+.*"))
        << outcome.out;
    for (const char* peer : {"enet", "zeromq"}) // a figure, or why there is none
        EXPECT_TRUE(contains(outcome.out, std::string("  ") + peer + " ") ||
                    contains(outcome.out, std::string("note: ") + peer))
            << outcome.out;
}

TEST(Bench, a_peer_that_the_case_does_not_know_is_refused) {
    const Outcome outcome = run({.words = {kumi_command, "bench", "udp", "--against", "mpich"}});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi bench: --against: udp has no peer mpich; there are: tcp, .*"));
    EXPECT_EQ(outcome.out, "");
}
