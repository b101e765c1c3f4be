// kumi bench: that contestants measure something and leave nothing behind; not how fast anything is.
#include "cluster/lab.hpp"

#include <thread>

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

TEST(Bench, a_row_that_the_case_does_not_have_is_refused) {
    for (const char* bench : {"udp", "composite"}) {
        const Outcome outcome = run({.words = {kumi_command, "bench", bench, "--rows", "composite.poll,nothing"}});
        EXPECT_EQ(outcome.code, 2);
        EXPECT_TRUE(is_one_line(outcome.err, "kumi bench: --rows: " + std::string(bench) + " has no row (nothing|composite.poll); there are: " + bench + "\\..*"));
        EXPECT_EQ(outcome.out, "");
    }
    const Outcome whole = run({.words = {kumi_command, "bench", "shmem", "--rows", "shmem.latency"}});
    EXPECT_EQ(whole.code, 2);
    EXPECT_TRUE(is_one_line(whole.err, "kumi bench: --rows: shmem is measured as a whole"));
}

namespace {

/// A benchmark that has a lab of its own.
class BenchInLab : public testing::Test {
protected:
    void SetUp() override {
        if (sanitized) GTEST_SKIP() << "the plain build is enough for it";
    }
    Command bench(const std::string& row, const Words& words = {}) const {
        Words all{kumi_command, "bench", "composite", "--rounds", "1", "--rows", row};
        all.insert(all.end(), words.begin(), words.end());
        return {.words = all, .environment = {"TMPDIR=" + folder_.path()}};
    }
    /// Kumi's figure in the table's first row; 0, when there is none.
    static double figure(const Outcome& outcome, const std::string& row) {
        double value = 0;
        EXPECT_EQ(std::sscanf(lines_of(outcome.out).at(1).c_str(), (row + " %*s %*s %lf").c_str(), &value), 1) << outcome.out;
        return value;
    }
    bool nothing_is_left() const { return std::filesystem::is_empty(folder_.path()); }

    Folder folder_;
};

} // namespace

TEST_F(BenchInLab, measures_a_pause_when_a_cable_is_pulled_and_leaves_nothing) {
    const Outcome outcome = run(bench("composite.failover.carrier"));
    if (is_excused(outcome.out)) GTEST_SKIP() << outcome.out;
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const double pause_ms = figure(outcome, "composite.failover.carrier");
    EXPECT_GT(pause_ms, 0.1); // messages are as far apart
    EXPECT_LT(pause_ms, 3000);
    EXPECT_TRUE(nothing_is_left());
}

TEST_F(BenchInLab, compares_the_best_networks_with_the_lan) {
    const Outcome outcome = run(bench("composite.neighbours.1024"));
    if (is_excused(outcome.out)) GTEST_SKIP() << outcome.out;
    EXPECT_GT(figure(outcome, "composite.neighbours.1024"), 0);
    EXPECT_TRUE(matches(lines_of(outcome.out).at(1), ".*  lan [0-9.]+")) << outcome.out;
}

TEST_F(BenchInLab, goes_down_when_the_benchmark_is_interrupted_or_killed) {
    for (const int number : {SIGINT, SIGKILL}) {
        Running running(bench("composite.soak"));
        EXPECT_TRUE(comes_true([&] { return !processes_marked(running.mark()).empty() && !nothing_is_left(); }, 10s));
        std::this_thread::sleep_for(300ms); // the lab is coming up, or its job is
        running.signal(number);
        EXPECT_EQ(running.finish().code, 128 + number);
        EXPECT_TRUE(comes_true([&] { return nothing_is_left(); }, 10s));
    }
}
