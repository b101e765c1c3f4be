// How the end of one node ends the job.
#include "cluster/command.hpp"

using namespace kumi::cluster_test;

namespace {

/// How long after the moment that a node printed before it died.
std::chrono::nanoseconds since_death(const Outcome& outcome) {
    const std::string words = "died at ";
    const auto at = outcome.out.find(words);
    if (at == std::string::npos) return std::chrono::hours(1);
    return outcome.ended.time_since_epoch() -
           std::chrono::nanoseconds(std::atoll(outcome.out.c_str() + at + words.size()));
}

struct Death {
    const char* name;
    const char* step;
    int code;
    const char* told;
};

} // namespace

class KumiRun : public testing::TestWithParam<Death> {};

TEST_P(KumiRun, a_node_that_dies_ends_the_job_within_a_second_and_is_named) {
    const Death& death = GetParam();
    // The others will not end by themselves, nor when asked to.
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "4"}, {"ignore=TERM", "join", "2:stamp",
                                                                       std::string("2:") + death.step, "wait"})});
    EXPECT_EQ(outcome.code, death.code);
    EXPECT_TRUE(
        is_one_line(without_backtraces(outcome.err),
                    std::string("kumi run: node 2 on [^ ]+ \\(pid [0-9]+\\) ") + death.told + "; ending 3 nodes"));
    EXPECT_LT(since_death(outcome), one_second);
}

INSTANTIATE_TEST_SUITE_P(
    Ends, KumiRun,
    testing::Values(Death{"abort", "abort", 134, "was killed by signal 6 \\(Aborted\\)(, core dumped)?"},
                    Death{"segfault", "segfault", 139,
                          "was killed by signal 11 \\(Segmentation fault\\)(, core dumped)?"},
                    Death{"exit_3", "exit=3", 3, "exited with code 3"},
                    Death{"exit_0_in_the_middle", "exit=0", 1, "exited with code 0 without leaving the job: .*"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Ends, the_first_failure_decides_the_exit_code) {
    const Outcome outcome =
        run({.words = kumi_run_actor({"-n", "3"}, {"handle=TERM", "join", "1:exit=3", "until_signal", "exit=9"})});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi run: node 1 .* exited with code 3; ending 2 nodes"));
}

TEST(Ends, those_that_are_ended_because_another_failed_are_asked_first_and_only_they_are_counted) {
    Running command({.words = kumi_run_actor({"-n", "3"}, {"handle=TERM", "handle=USR1", "join", "say=ready", "0:leave",
                                                           "0:exit=0", "until_signal", "1:exit=3"})});
    ASSERT_TRUE(command.printed("ready", 3));
    ASSERT_TRUE(comes_true([&] { return processes_running(program("actor"), command.mark()).size() == 2; }, 10s));
    ::poll(nullptr, 0, 100); // for kumi run to hear of that end
    const auto nodes = processes_running(program("actor"), command.mark());
    ASSERT_EQ(nodes.size(), 2u);
    ASSERT_EQ(::kill(nodes[0], SIGKILL), 0);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 137);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi run: node [12] .* was killed by signal 9 \\(Killed\\); ending 1 node"));
    EXPECT_TRUE(contains(outcome.out, ": got signal 15\n")) << "it had time to handle it: " << outcome.out;
}

TEST(Ends, without_a_time_for_joining_nobody_is_late_and_who_need_not_join_is_never) {
    const Outcome no_limit =
        run({.words = kumi_run_actor({"-n", "2", "--join-timeout", "0"}, {"sleep=100", "join", "say=here"})});
    EXPECT_EQ(no_limit.code, 0);
    EXPECT_EQ(no_limit.err, "");
    const Outcome no_join = run({.words = kumi_run({"-n", "2", "--no-join", "--join-timeout", "1", "sleep", "1.3"})});
    EXPECT_EQ(no_join.code, 0);
    EXPECT_EQ(no_join.err, "");
}

TEST(Ends, wrappers_find_the_number_of_their_node_in_the_environment_and_np_means_n) {
    for (const char* const option : {"-n", "-np"}) {
        const Outcome outcome = run({.words = kumi_run({option, "3", "-l", "--no-join", "sh", "-c",
                                                        "echo $KUMI_NODE of $KUMI_NODES at $KUMI_HOST_SLOT"})});
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        for (const char* const line : {"[0] 0 of 3 at 0\n", "[1] 1 of 3 at 1\n", "[2] 2 of 3 at 2\n"})
            EXPECT_TRUE(contains(outcome.out, line)) << outcome.out;
    }
}

TEST(Ends, a_node_that_has_left_may_go_while_the_others_work_on) {
    const Outcome outcome = run(
        {.words = kumi_run_actor({"-n", "3"}, {"join", "0:leave", "0:exit=0", "wait_ms=300", "leave", "say=done"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(lines_of(outcome.out).size(), 4u) << outcome.out; // two that used some time and are done
}

TEST(Ends, what_a_node_printed_before_it_died_is_not_lost) {
    const Outcome outcome = run(
        {.words = kumi_run_actor({"-n", "2", "-l"}, {"join", "1:long=60000", "1:bare=last words", "1:abort", "wait"})});
    EXPECT_EQ(outcome.code, 134);
    EXPECT_EQ(outcome.out, "[1] " + std::string(60000, 'x') + "\n[1] last words\n");
}

TEST(Ends, a_waiting_node_uses_less_than_one_percent_of_a_core) {
    if (sanitized) KUMI_SKIP(skips::plain_build_only); // instrumented code is no measure
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "2"}, {"join", "0:sleep=2000", "1:wait_ms=2000"})});
    EXPECT_EQ(outcome.code, 0);
    const std::string words = "node 1: used ";
    ASSERT_EQ(outcome.out.find(words), 0u) << outcome.out;
    EXPECT_LT(std::atol(outcome.out.c_str() + words.size()), 20'000) << "microseconds in 2 s";
}

TEST(Ends, while_nodes_wait_kumi_run_sleeps_also_after_the_time_for_joining) {
    Running command({.words = kumi_run_actor({"-n", "2", "--join-timeout", "1"},
                                             {"handle=USR1", "join", "say=ready", "until_signal"})});
    ASSERT_TRUE(command.printed("ready", 2));
    ::poll(nullptr, 0, 1200);
    const auto processor_ticks = [&] {
        std::istringstream stat(file_text("/proc/" + std::to_string(command.pid()) + "/stat"));
        std::string word;
        for (int i = 0; i < 13; ++i) stat >> word; // our name has no blank
        long user = 0, system = 0;
        stat >> user >> system;
        return user + system;
    };
    const long before = processor_ticks();
    ::poll(nullptr, 0, 1000);
    EXPECT_LT(processor_ticks() - before, ::sysconf(_SC_CLK_TCK) / 10);
    command.signal(SIGUSR1);
    EXPECT_EQ(command.finish().code, 0);
}
