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
                         testing::Values(std::pair{"TERM", SIGTERM}, std::pair{"INT", SIGINT},
                                         std::pair{"HUP", SIGHUP}),
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

// ---- what nodes wait for

namespace {

/// What the nodes of the program `waiting` print at a SIGQUIT, when node 0 has waited for long enough to show it.
std::string waits_of(const Words& words, const std::vector<std::string>& environment = {}) {
    Words all{"-n", "2", program("waiting")};
    all.insert(all.end(), words.begin(), words.end());
    Running command({.words = kumi_run(all), .environment = environment});
    if (!command.printed("is ready", 2)) return "";
    const auto has_told = [&] {
        bool zero = false, one = false;
        for (const std::string& line : lines_of(command.err())) {
            zero |= line.starts_with("kumi: node 0 on ") && !contains(line, "no thread has waited");
            one |= line.starts_with("kumi: node 1 on ");
        }
        return zero && one;
    };
    const auto came = comes_true(
        [&] {
            command.signal(SIGQUIT);
            ::poll(nullptr, 0, 200);
            return has_told();
        },
        10s);
    command.signal(SIGTERM);
    const Outcome outcome = command.finish();
    EXPECT_TRUE(came) << outcome.err;
    EXPECT_EQ(outcome.code, 128 + SIGTERM) << "SIGQUIT ends nothing";
    return outcome.err;
}

} // namespace

TEST(Waits, at_SIGQUIT_each_node_says_what_it_waits_for_and_goes_on) {
    const std::string computes =
        "kumi: node 1 on [^ ]+: no thread has waited in a call of Kumi for long: this node computes, or waits for "
        "something else";
    for (const auto& [what, told] :
         {std::pair{"barrier", "barrier: node 1 on [^ ]+ has not come"},
          {"allreduce", "allreduce among 0-1: node 1 on [^ ]+ has not come"},
          {"flag", "waiting for a flag: it is 3 and not 5 or more"},
          {"future", "a future: there is no answer yet; under way: .*call.* with node 1 on .*"}}) {
        const std::string err = waits_of({what});
        bool has_wait = false, has_computing = false;
        for (const std::string& line : lines_of(err)) {
            has_wait |= matches(line, std::string("kumi: node 0 on [^ ]+: ") + told + ".*, for [0-9]+[.][0-9] s");
            has_computing |= matches(line, computes);
        }
        EXPECT_TRUE(has_wait) << what << ": " << err;
        if (std::string_view(what) != "future") {
            EXPECT_TRUE(has_computing) << what << ": " << err;
        }
    }
}

TEST(Waits, are_told_over_networks_too) {
    const std::string err = waits_of({"barrier"}, {"KUMI_DEVICE=udp"});
    EXPECT_TRUE(contains(err, "barrier: node 1 on ")) << err;
}

TEST(Waits, a_program_that_handles_SIGQUIT_is_not_sent_it_because_somebody_asks) {
    Running command(
        {.words = kumi_run_actor({"-n", "2"}, {"handle=QUIT", "join", "say=ready", "sleep=1000", "say=done"})});
    ASSERT_TRUE(command.printed("ready", 2));
    const auto start = Clock::now();
    command.signal(SIGQUIT);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_GT(outcome.ended - start, 500ms) << "a signal would have ended the sleep";
    EXPECT_TRUE(contains(outcome.out, "node 1: done")) << outcome.out;
}

TEST(Waits, are_told_by_nodes_of_a_job_that_a_shell_has_started_in_the_background) {
    const Outcome outcome = run({.words = kumi_run({"-n", "2", "--timeout", "1", program("waiting"), "barrier"}),
                                 .ignored_signals = {SIGQUIT, SIGINT}});
    EXPECT_EQ(outcome.code, 124);
    EXPECT_TRUE(contains(outcome.err, "barrier: node 1 on ")) << outcome.err;
}

TEST(Waits, a_job_that_ends_while_a_flag_waits_for_a_barrier_has_missed_no_deadline) {
    const Outcome outcome = run({.words = kumi_run({"-n", "2", program("waiting"), "flag of nobody", "2"})});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
}

TEST(Waits, SIGQUIT_ends_programs_that_are_not_of_kumi) {
    Running command({.words = kumi_run({"-n", "1", "--no-join", "sh", "-c", "echo ready; exec sleep 60"})});
    ASSERT_TRUE(command.printed("ready"));
    command.signal(SIGQUIT);
    EXPECT_EQ(command.finish().code, 128 + SIGQUIT);
}

TEST(Waits, nodes_that_have_not_joined_are_named_and_live_on) {
    Running command({.words = kumi_run_actor({"-n", "2"}, {"say=ready", "sleep=1500", "join", "say=in"})});
    ASSERT_TRUE(command.printed("ready", 2));
    command.signal(SIGQUIT);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "kumi run: warning: not joined yet: node ")) << outcome.err;
}

TEST(Waits, when_a_deadline_passes_all_nodes_say_what_they_wait_for) {
    const Outcome outcome = run({.words = kumi_run({"-n", "3", program("waiting"), "barrier", "2"})});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "not all nodes have come within the time given")) << outcome.out;
    const std::vector<std::string> lines = lines_of(outcome.err);
    ASSERT_GE(lines.size(), 2u) << outcome.err;
    EXPECT_TRUE(matches(lines[0], "kumi run: warning: a deadline has passed on node [02] on [^ ]+ \\(pid [0-9]+\\): "
                                  "barrier: node 1 on [^ ]+ has not come.*, for [0-9]+[.][0-9] s; the others:"))
        << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "kumi: node 1 on ")) << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "kumi: node 0 on ") && contains(outcome.err, "kumi: node 2 on "))
        << "the node that was late is not asked: " << outcome.err;
    // Those of nodes 0 and 2 pass together, and are told once.
    const auto told = outcome.err.find("a deadline has passed");
    EXPECT_EQ(outcome.err.find("a deadline has passed", told + 1), std::string::npos) << outcome.err;
}

TEST(Waits, nodes_in_a_barrier_of_the_job_and_in_another_call_on_all_nodes_are_warned) {
    const Outcome outcome =
        run({.words = kumi_run({"-n", "2", program("waiting"), "barrier and allreduce", "4"})});
    EXPECT_TRUE(contains(outcome.err, "node 1 on ")) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, " waits in barrier(), and node 0 on ")) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, " in allreduce: all nodes make the same calls in the same order")) << outcome.err;
}

TEST(Waits, a_job_that_takes_longer_than_its_timeout_says_why_and_ends) {
    const auto start = Clock::now();
    const Outcome outcome = run({.words = kumi_run({"-n", "2", "--timeout", "2", program("waiting"), "barrier"})});
    EXPECT_EQ(outcome.code, 124);
    EXPECT_LT(outcome.ended - start, 10s);
    EXPECT_TRUE(contains(outcome.err, "barrier: node 1 on ")) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "kumi run: the job has not ended within 2 s (--timeout); ending 2 nodes\n"))
        << outcome.err;
    const Outcome in_time = run({.words = kumi_run({"-n", "2", "--timeout", "30", example("01_hello")})});
    EXPECT_EQ(in_time.code, 0) << in_time.err;
    EXPECT_EQ(in_time.err, "");
    const Outcome other = run({.words = kumi_run({"-n", "1", "--no-join", "--timeout", "1", "sleep", "30"})});
    EXPECT_EQ(other.code, 124);
    EXPECT_TRUE(is_one_line(other.err, "kumi run: the job has not ended within 1 s .--timeout.; ending 1 node"));
}

// ---- crashes

TEST(Crashes, print_the_functions_that_the_thread_was_in) {
    const std::string here = "#0 (anonymous namespace)::";
    for (const auto& [what, number, frame] : {std::tuple{"segv", SIGSEGV, here + "step_that_crashes(int*)"},
                                              {"abort", SIGABRT, "main + 0x"},
                                              {"overflow", SIGSEGV, here + "step_without_end(int)"}}) {
        if (sanitized && number == SIGSEGV) continue; // a sanitizer finds it first
        const Outcome outcome = run({.words = kumi_run({"-n", "1", program("waiting"), what})});
        EXPECT_EQ(outcome.code, 128 + number) << what;
        const std::string start = number == SIGSEGV ? ": SIGSEGV at address 0x" : ": SIGABRT; the thread was in\n";
        EXPECT_TRUE(contains(outcome.err, "kumi: node 0 on ")) << outcome.err;
        EXPECT_TRUE(contains(outcome.err, start)) << outcome.err;
        EXPECT_TRUE(contains(outcome.err, frame)) << what << ": " << outcome.err;
        EXPECT_TRUE(contains(outcome.err, "was killed by signal " + std::to_string(number))) << outcome.err;
    }
}
