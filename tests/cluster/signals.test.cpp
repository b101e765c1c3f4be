// What the user sends to kumi run.
#include "cluster/command.hpp"

using namespace kumi::cluster_test;

namespace {

const Words steps_that_wait{"join", "say=ready", "wait"};

} // namespace

class PassedOn : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(PassedOn, nodes_get_to_handle_the_signal_that_ends_the_job) {
    const auto [name, number] = GetParam();
    Running command(
        {.words = kumi_run_actor({"-n", "2"}, {std::string("handle=") + name, "join", "say=ready", "until_signal"})});
    ASSERT_TRUE(command.printed("ready", 2));
    command.signal(number);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 128 + number);
    EXPECT_TRUE(contains(outcome.out, "node 0: got signal " + std::to_string(number))) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "node 1: got signal " + std::to_string(number))) << outcome.out;
    EXPECT_TRUE(is_one_line(outcome.err, "kumi run: ended by signal " + std::to_string(number) +
                                             " \\([A-Za-z]+\\), passed on to 2 nodes"));
}

INSTANTIATE_TEST_SUITE_P(Signals, PassedOn,
                         testing::Values(std::pair{"TERM", SIGTERM}, std::pair{"INT", SIGINT}, std::pair{"HUP", SIGHUP},
                                         std::pair{"QUIT", SIGQUIT}),
                         [](const auto& tested) { return tested.param.first; });

TEST(Signals, nodes_that_handle_nothing_end_at_once) {
    Running command({.words = kumi_run_actor({"-n", "3"}, steps_that_wait)});
    ASSERT_TRUE(command.printed("ready", 3));
    const auto sent = Clock::now();
    command.signal(SIGTERM);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 143);
    EXPECT_LT(outcome.ended - sent, one_second);
}

TEST(Signals, SIGUSR1_is_passed_on_and_ends_nothing) {
    Running command({.words = kumi_run_actor({"-n", "2"}, {"handle=USR1", "join", "say=ready", "until_signal"})});
    ASSERT_TRUE(command.printed("ready", 2));
    command.signal(SIGUSR1);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(contains(outcome.out, "node 0: got signal 10\n")) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "node 1: got signal 10\n")) << outcome.out;
}

TEST(Signals, other_signals_that_programs_use_are_passed_on_and_end_nothing) {
    for (const auto& [name, number] : {std::pair{"USR2", SIGUSR2}, {"WINCH", SIGWINCH}}) {
        Running command({.words = kumi_run_actor(
                             {"-n", "1"}, {std::string("handle=") + name, "join", "say=ready", "until_signal"})});
        ASSERT_TRUE(command.printed("ready"));
        command.signal(number);
        const Outcome outcome = command.finish();
        EXPECT_EQ(outcome.code, 0);
        EXPECT_EQ(outcome.err, "");
        EXPECT_TRUE(contains(outcome.out, "node 0: got signal " + std::to_string(number) + "\n")) << outcome.out;
    }
}

TEST(Signals, nodes_that_have_ended_are_not_counted_among_those_that_get_it) {
    Running command({.words = kumi_run_actor({"-n", "3"}, {"join", "say=ready", "0:leave", "0:exit=0", "wait"})});
    ASSERT_TRUE(command.printed("ready", 3));
    ASSERT_TRUE(comes_true([&] { return processes_running(program("actor"), command.mark()).size() == 2; }, 10s));
    ::poll(nullptr, 0, 100); // for kumi run to hear of that end
    command.signal(SIGTERM);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 143);
    EXPECT_TRUE(is_one_line(outcome.err, "kumi run: ended by signal 15 \\(Terminated\\), passed on to 2 nodes"));
}

TEST(Signals, a_stopped_node_is_woken_up_to_end_when_another_fails) {
    Running command({.words = kumi_run_actor({"-n", "2"}, {"handle=TERM", "handle=USR1", "join", "say=ready",
                                                           "until_signal", "1:exit=3"})});
    ASSERT_TRUE(command.printed("ready", 2));
    const auto nodes = processes_running(program("actor"), command.mark());
    ASSERT_EQ(nodes.size(), 2u);
    const auto is_stopped = [&](pid_t pid) {
        return contains(file_text("/proc/" + std::to_string(pid) + "/status"), "State:\tT");
    };
    for (const pid_t pid : nodes) ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    ASSERT_TRUE(comes_true([&] { return is_stopped(nodes[0]) && is_stopped(nodes[1]); }, 10s));
    // Whichever is node 0, the other is killed: then this one can only handle SIGTERM if it is let go on.
    ASSERT_EQ(::kill(nodes[1], SIGKILL), 0);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 137);
    EXPECT_TRUE(contains(outcome.out, ": got signal 15\n")) << outcome.out;
}

TEST(Signals, a_node_that_ignores_SIGTERM_is_killed_after_its_grace) {
    Running command({.words = kumi_run_actor({"-n", "2"}, {"ignore=TERM", "join", "say=ready", "wait"})});
    ASSERT_TRUE(command.printed("ready", 2));
    const auto sent = Clock::now();
    command.signal(SIGTERM);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 143);
    EXPECT_GT(outcome.ended - sent, 3s) << "it had no time to save anything";
    EXPECT_LT(outcome.ended - sent, 10s);
}

TEST(Signals, asked_twice_kumi_run_does_not_wait_for_the_grace) {
    Running command({.words = kumi_run_actor({"-n", "2"}, {"ignore=TERM", "join", "say=ready", "wait"})});
    ASSERT_TRUE(command.printed("ready", 2));
    const auto sent = Clock::now();
    command.signal(SIGTERM);
    ::poll(nullptr, 0, 200);
    command.signal(SIGTERM);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 143);
    EXPECT_LT(outcome.ended - sent, 200ms + one_second);
}

TEST(Signals, what_nohup_made_us_ignore_stays_ignored) {
    Running command({.words = kumi_run_actor({"-n", "2"}, {"handle=USR1", "join", "say=ready", "until_signal"}),
                     .ignored_signals = {SIGHUP}});
    ASSERT_TRUE(command.printed("ready", 2));
    command.signal(SIGHUP);
    ::poll(nullptr, 0, 200);
    command.signal(SIGUSR1);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
}

TEST(Signals, an_inherited_SIGCHLD_that_is_ignored_hides_no_end) {
    const Outcome outcome =
        run({.words = kumi_run_actor({"-n", "2"}, {"join", "1:exit=7", "wait"}), .ignored_signals = {SIGCHLD}});
    EXPECT_EQ(outcome.code, 7);
}

TEST(Signals, a_stopped_job_goes_on_when_it_is_continued) {
    Running command({.words = kumi_run_actor({"-n", "2"}, {"handle=USR1", "join", "say=ready", "until_signal"})});
    ASSERT_TRUE(command.printed("ready", 2));
    const auto stopped = [&] {
        std::size_t count = 0;
        for (const std::string& process : processes_marked(command.mark()))
            count +=
                contains(file_text("/proc/" + std::to_string(std::atoi(process.c_str())) + "/status"), "State:\tT");
        return count;
    };
    command.signal(SIGTSTP);
    EXPECT_TRUE(comes_true([&] { return stopped() == 3; }, 5s)) << "kumi run and both nodes: " << stopped();
    command.signal(SIGCONT);
    EXPECT_TRUE(comes_true([&] { return stopped() == 0; }, 5s)) << stopped();
    command.signal(SIGUSR1);
    EXPECT_EQ(command.finish().code, 0);
}
