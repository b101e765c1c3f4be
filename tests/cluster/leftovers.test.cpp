// Nothing outlives a job: no process, no file. That no process is left is checked after every command of these tests;
// here are the ends that make it hard.
#include "cluster/command.hpp"

#include <set>

using namespace kumi::cluster_test;

namespace {

std::set<std::string> kumi_files() {
    std::set<std::string> names;
    for (const char* folder : {"/dev/shm", "/tmp", "/run", "/var/tmp"}) {
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
            if (contains(entry.path().filename(), "kumi") && !contains(entry.path().filename(), "kumi-test-"))
                names.insert(entry.path());
    }
    return names;
}

std::string script_with_helper(const Folder& folder, const std::string& helper) {
    return folder.write("start.sh", "#!/bin/sh\n" + helper + " >/dev/null 2>&1 </dev/null &\n\"" + program("actor") +
                                        "\" \"$@\"\n");
}

} // namespace

TEST(Leftovers, killing_kumi_run_kills_the_nodes_and_all_that_they_started) {
    const auto before = kumi_files();
    Folder folder;
    Running command({.words = kumi_run({"-n", "3", script_with_helper(folder, "sleep 1000"), "ignore=TERM",
                                        "ignore=HUP", "join", "say=ready", "wait"})});
    ASSERT_TRUE(command.printed("ready", 3));
    // kumi run, its guardian, and for each node a shell, its helper and the program.
    EXPECT_TRUE(comes_true([&] { return processes_marked(command.mark()).size() == 2 + 3 * 3; }, 5s))
        << command.left_behind();
    command.signal(SIGKILL);
    EXPECT_TRUE(comes_true([&] { return processes_marked(command.mark()).empty(); }, one_second))
        << command.left_behind();
    EXPECT_EQ(command.finish().code, 137);
    EXPECT_EQ(kumi_files(), before);
}

TEST(Leftovers, a_helper_in_the_background_ends_with_its_node) {
    const auto before = kumi_files();
    Folder folder;
    const Outcome outcome = run({.words = kumi_run({"-n", "2", script_with_helper(folder, "sleep 1000"), "join"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(kumi_files(), before);
}

TEST(Leftovers, a_helper_in_a_session_of_its_own_ends_with_the_job) {
    Folder folder;
    const Outcome outcome =
        run({.words = kumi_run({"-n", "2", script_with_helper(folder, "setsid sleep 1000"), "join"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
}

TEST(Leftovers, a_helper_of_a_node_that_died_is_gone_too) {
    Folder folder;
    const Outcome outcome = run(
        {.words = kumi_run({"-n", "2", script_with_helper(folder, "setsid sleep 1000"), "join", "1:abort", "wait"})});
    EXPECT_EQ(outcome.code, 134);
}

TEST(Leftovers, the_helper_of_a_node_that_has_ended_does_not_wait_for_the_others) {
    Folder folder;
    Running command({.words = kumi_run({"-n", "2", script_with_helper(folder, "sleep 1000"), "handle=USR1", "join",
                                        "say=ready", "0:leave", "0:exit=0", "until_signal"})});
    ASSERT_TRUE(command.printed("ready", 2));
    const auto helpers = [&] {
        std::size_t count = 0;
        for (const std::string& process : processes_marked(command.mark())) count += contains(process, "sleep 1000");
        return count;
    };
    EXPECT_TRUE(comes_true([&] { return helpers() == 1; }, 5s)) << command.left_behind();
    command.signal(SIGUSR1);
    // The signal reaches the shell as well, which ends of it.
    command.finish();
}
