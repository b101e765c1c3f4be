// What cannot work is refused in one line that says what to do, and nothing is left.
#include "cluster/command.hpp"

#include <utility>

using namespace kumi::cluster_test;

namespace {

void expect_refusal(const Outcome& outcome, const std::string& pattern, int code = 1) {
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(is_one_line(outcome.err, pattern));
}

} // namespace

// ---- the command line

TEST(Refusals, a_number_of_nodes_that_is_none) {
    for (const char* number : {"0", "-1", "abc", "1.5", "", "99999999999", "4 "})
        expect_refusal(run({.words = kumi_run({"-n", number, example("01_hello")})}),
                       std::string("kumi run: --nodes: ") + number + ": write how many, 1 or more; see kumi run --help",
                       2);
}

TEST(Refusals, more_nodes_than_the_system_lets_us_watch) {
    expect_refusal(run({.words = {"sh", "-c", "ulimit -n 4096; exec \"$0\" run -n 20000 \"$1\"", kumi_command,
                                  example("01_hello")}}),
                   "kumi run: -n 20000: .* (open files|memory|processes).*");
}

TEST(Refusals, more_nodes_than_this_machine_has_memory_or_process_numbers_for) {
    expect_refusal(run({.words = kumi_run({"-n", "4000000000", example("01_hello")})}), "kumi run: -n 4000000000: .*");
    if (::sysconf(_SC_PHYS_PAGES) / 1024 * ::sysconf(_SC_PAGESIZE) / 1024 < 140 * 1024)
        expect_refusal(run({.words = kumi_run({"-n", "100000", example("01_hello")})}), "kumi run: -n 100000: .*");
}

TEST(Refusals, words_that_are_missing_or_unknown) {
    expect_refusal(run({.words = kumi_run({"-n", "2"})}), "kumi run: program is required; see kumi run --help", 2);
    expect_refusal(run({.words = kumi_run({example("01_hello")})}),
                   "kumi run: --nodes is required; see kumi run --help", 2);
    expect_refusal(run({.words = kumi_run({"-n", "2", "--bogus", example("01_hello")})}),
                   "kumi run: .*--bogus; see kumi run --help", 2);
    expect_refusal(run({.words = kumi_run({"--bogus", "-n", "2", example("01_hello")})}),
                   "kumi run: .*--bogus; see kumi run --help", 2);
    expect_refusal(run({.words = {kumi_command, "walk"}}), "kumi: walk: no such command or option; see kumi --help", 2);
    expect_refusal(run({.words = {kumi_command, "--walk"}}), "kumi: --walk: no such command or option; see kumi --help",
                   2);
    expect_refusal(run({.words = kumi_run({"-n", "2", "--join-timeout", "-1", example("01_hello")})}),
                   "kumi run: --join-timeout: -1: write how many seconds, or 0 for no limit; see kumi run --help", 2);
    expect_refusal(run({.words = kumi_run({"-n", "2", "-x", "NAME", example("01_hello")})}),
                   "kumi run: --env: NAME: write NAME=VALUE; see kumi run --help", 2);
}

// ---- the program

TEST(Refusals, programs_that_cannot_be_run) {
    Folder folder;
    const auto refused = [](const std::string& what, const std::string& told) {
        expect_refusal(run({.words = kumi_run({"-n", "3", what})}), "kumi run: " + told);
    };
    refused("/no/such/program", "/no/such/program: no such program");
    refused("no-such-program", "no-such-program: no such program in PATH");
    refused("", "the program's name is empty");
    refused(folder.path(), folder.path() + ": is a folder, not a program");
    const std::string text = folder.write("text", "hello\n", false);
    refused(text, text + ": not executable; chmod \\+x it, or name its interpreter");
    const std::string no_interpreter = folder.write("no_interpreter", "hello\n");
    refused(no_interpreter, no_interpreter + ": not a program for this machine \\(no #! line\\?\\)");
    const std::string wrong_interpreter = folder.write("wrong_interpreter", "#!/no/such/interpreter\n");
    refused(wrong_interpreter, wrong_interpreter + ": the interpreter that it names \\(#! line\\) does not exist");
    folder.write("here", "#!/bin/sh\n");
    expect_refusal(run({.words = kumi_run({"-n", "1", "here"}), .folder = folder.path()}),
                   "kumi run: here: no such program in PATH; for the one here write ./here");
}

// ---- memory

TEST(Refusals, a_size_that_is_none) {
    expect_refusal(
        run({.words = kumi_run({"-n", "3", example("01_hello")}), .environment = {"KUMI_SHMEM_MEMORY=garbage"}}),
        "kumi run: " + any_node + "cannot go on: KUMI_SHMEM_MEMORY=garbage: not a size; .*");
}

TEST(Refusals, more_memory_than_there_is) {
    expect_refusal(
        run({.words = kumi_run({"-n", "3", example("01_hello")}), .environment = {"KUMI_SHMEM_MEMORY=100000G"}}),
        "kumi run: " + any_node + "cannot go on: shared memory for 3 nodes needs .*");
}

TEST(Refusals, a_limit_of_addresses_that_is_too_small) {
    if (sanitized) KUMI_SKIP(skips::plain_build_only); // sanitizers need more addresses than any limit
    expect_refusal(
        run({.words = {"sh", "-c", "ulimit -v 60000; exec \"$0\" run -n 4 \"$1\"", kumi_command, example("01_hello")}}),
        "kumi run: " + any_node + "cannot go on: mapping .* of shared memory .*ulimit -v.*");
}

TEST(Refusals, a_limit_of_file_sizes_that_is_too_small) {
#if defined(KUMI_THREAD_SANITIZER)
    KUMI_SKIP(skips::not_under_tsan); // it keeps its own memory in a file, and dies of this limit before main()
#endif
    expect_refusal(
        run({.words = {"sh", "-c", "ulimit -f 10; exec \"$0\" run -n 3 \"$1\"", kumi_command, example("01_hello")}}),
        "kumi run: " + any_node + "cannot go on: shared memory for 3 nodes needs .*ulimit -f.*");
}

TEST(Refusals, two_nodes_do_with_64_open_files_and_with_fewer_than_needed_the_number_is_told) {
    for (const char* device : {"shmem", "udp", "composite"}) {
        const Outcome outcome = run({.words = {"sh", "-c", "ulimit -n 64; exec \"$0\" run -n 2 \"$1\"", kumi_command,
                                               example("05_remote_memory")},
                                     .environment = {std::string("KUMI_DEVICE=") + device}});
        EXPECT_EQ(outcome.code, 0) << device << outcome.err;
    }
    expect_refusal(
        run({.words = {"sh", "-c", "ulimit -n 32; exec \"$0\" run -n 2 \"$1\"", kumi_command, example("01_hello")}}),
        "kumi run: -n 2: watching so many nodes needs 44 open files, and the limit is 32 \\(ulimit -Hn\\)");
}

// ---- joining

TEST(Refusals, a_program_that_writes_junk_to_the_socket_that_nodes_join_by) {
    expect_refusal(
        run({.words = kumi_run(
                 {"-n", "2", "sh", "-c", "printf 'this is no frame of any version at all' >&$KUMI_BOOT; sleep 20"})}),
        "kumi run: " + any_node +
            "cannot go on: what came over the KUMI_BOOT socket is no frame of this version of Kumi; ending 2 nodes");
}

TEST(Refusals, a_program_that_ends_without_joining) {
    expect_refusal(
        run({.words = kumi_run({"-n", "3", "/bin/true"})}),
        "kumi run: /bin/true ended without joining the job: it called neither kumi::Job::join\\(\\) nor MPI_Init; "
        "--no-join runs .*");
}

TEST(Refusals, a_program_that_runs_for_ever_without_joining) {
    expect_refusal(run({.words = kumi_run_actor({"-n", "3", "--join-timeout", "1"}, {"ignore=TERM", "forever"})}),
                   "kumi run: [^ ]*/actor did not join the job within 1 s: it called neither kumi::Job::join\\(\\) nor "
                   "MPI_Init; --no-join runs .*, "
                   "--join-timeout waits longer; ending 3 nodes");
}

TEST(Refusals, one_node_that_never_joins_while_the_others_wait) {
    Folder folder;
    expect_refusal(
        run({.words = kumi_run_actor({"-n", "3", "--join-timeout", "1"}, {"first:forever", "join", "wait"}),
             .environment = {"ACTOR_FOLDER=" + folder.path()}}),
        "kumi run: node [0-2] on [^ ]+ did not join within 1 s; --join-timeout waits longer; ending 3 nodes");
}

TEST(Refusals, a_node_that_ends_before_it_joins_while_the_others_wait) {
    Folder folder;
    const Words steps{"first:exit=0", "sleep=300", "join", "wait"};
    expect_refusal(run({.words = kumi_run_actor({"-n", "3"}, steps), .environment = {"ACTOR_FOLDER=" + folder.path()}}),
                   "kumi run: " + any_node +
                       "exited before it joined the job, and the others wait for it; ending 2 nodes");
}

TEST(Refusals, a_node_that_ends_without_joining_after_the_others_have) {
    Folder folder;
    const Words steps{"first:late_exit=300", "join", "wait"};
    expect_refusal(run({.words = kumi_run_actor({"-n", "3"}, steps), .environment = {"ACTOR_FOLDER=" + folder.path()}}),
                   "kumi run: " + any_node +
                       "exited before it joined the job, and the others wait for it; ending 2 nodes");
}

TEST(Refusals, a_second_join_in_one_process_is_an_error_that_the_program_sees) {
    const Outcome outcome = run({.words = kumi_run_actor({"-n", "2"}, {"join", "1:join_again"})});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out, "node 1: this process has joined already: a node is one process, and joins once\n");
}

TEST(Refusals, two_processes_that_join_as_one_node_one_after_the_other) {
    const Outcome outcome =
        run({.words = kumi_run({"-n", "2", "sh", "-c", "\"$0\" join; \"$0\" join", program("actor")})});
    expect_refusal(outcome, "kumi run: " + any_node +
                                "cannot go on: node [01] has joined already: a node is one process, and joins once.*");
}

TEST(Refusals, two_processes_that_join_as_one_node_at_once) {
    Outcome outcome = run({.words = kumi_run_actor({"-n", "2"}, {"fork", "join", "wait"})});
    // Both read from one socket: either may get what was meant for the other, and say so before it is ended.
    for (const std::string& line : lines_of(std::exchange(outcome.err, "")))
        if (line != "kumi: kumi run gave an answer out of turn: two processes join as one node, or versions differ")
            outcome.err += line + "\n";
    expect_refusal(outcome, "kumi run: " + any_node +
                                "cannot go on: node [01] has joined already: a node is one process, and joins once.*");
}

TEST(Refusals, a_boot_socket_that_is_none) {
    for (const char* socket : {"garbage", "77", "-1"})
        expect_refusal(run({.words = {program("actor"), "join"}, .environment = {std::string("KUMI_BOOT=") + socket}}),
                       std::string("kumi: KUMI_BOOT=") + socket +
                           " names no open socket: start the program with kumi run, or unset KUMI_BOOT");
}
