// kumi run on several hosts. Most needs no other host: an agent that runs its command right here is as good as ssh, and
// nodes on hosts of different names talk by UDP. What does need hosts is done in the lab.
#include "cluster/lab.hpp"

#include <map>
#include <set>

using namespace kumi::cluster_test;

namespace {

/// Signals a process of the command whose command line contains `part`.
bool signal_process(const std::string& mark, const std::string& part, int number) {
    for (const std::string& process : processes_marked(mark))
        if (contains(process, part)) return ::kill(std::atoi(process.c_str()), number) == 0;
    return false;
}

std::set<std::string> sorted_lines(const std::string& text) {
    const auto lines = lines_of(text);
    return {lines.begin(), lines.end()};
}

class Hosts : public testing::Test {
protected:
    /// A program that takes a host and a command; `script` has them as $1 and $2.
    std::string agent(const std::string& script = "exec sh -c \"$2\"") const {
        return folder_.write("agent", "#!/bin/sh\n" + script + "\n");
    }

    /// `kumi run --rsh AGENT WORDS`, by the agent that was written last.
    Command on_hosts(const Words& words) const {
        Words all{"--rsh", folder_.path() + "/agent"};
        all.insert(all.end(), words.begin(), words.end());
        return {.words = kumi_run(all), .environment = {"KUMI_DEVICE=udp"}};
    }
    static Words actor(Words words, const Words& steps) {
        words.push_back(program("actor"));
        words.insert(words.end(), steps.begin(), steps.end());
        return words;
    }
    void expect_refusal(const Words& words, const std::string& pattern) const {
        const Outcome outcome = run(on_hosts(words));
        EXPECT_EQ(outcome.code, 1);
        EXPECT_EQ(outcome.out, "");
        EXPECT_TRUE(is_one_line(outcome.err, "kumi run: " + pattern));
    }

    Folder folder_;
};

} // namespace

// ---- jobs

TEST_F(Hosts, nodes_are_seated_as_told_and_know_their_hosts) {
    agent();
    const auto hosts_of = [&](const Words& where) {
        Words words = where;
        words.push_back(example("01_hello"));
        const Outcome outcome = run(on_hosts(words));
        EXPECT_EQ(outcome.code, 0);
        EXPECT_EQ(outcome.err, "");
        return sorted_lines(outcome.out);
    };
    EXPECT_EQ(hosts_of({"--hosts", "one,two[0-1]:2", "-n", "4"}),
              (std::set<std::string>{"hello from node 0 of 4 on one", "hello from node 1 of 4 on two0",
                                     "hello from node 2 of 4 on two0", "hello from node 3 of 4 on two1"}));
    EXPECT_EQ(hosts_of({"--hosts", "one:3,two:3", "-n", "2", "--place", "spread"}),
              (std::set<std::string>{"hello from node 0 of 2 on one", "hello from node 1 of 2 on two"}));
    EXPECT_EQ(hosts_of({"--hosts", "one:3,two:3", "-n", "4", "--place", "2-per-host"}),
              (std::set<std::string>{"hello from node 0 of 4 on one", "hello from node 1 of 4 on one",
                                     "hello from node 2 of 4 on two", "hello from node 3 of 4 on two"}));
}

TEST_F(Hosts, one_other_host_has_shared_memory) {
    agent();
    Command command = on_hosts({"--hosts", "one:3", "-n", "3", "--traffic", example("02_ring"), "20"});
    command.environment.clear();
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(contains(outcome.out, ring_result(3, 20)) && contains(outcome.out, "shmem")) << outcome.out;
}

TEST_F(Hosts, output_is_labelled_and_each_stream_goes_to_its_own) {
    agent("echo Welcome to $1; echo You have mail >&2; exec sh -c \"$2\""); // as login shells do
    const Outcome outcome = run(on_hosts(actor({"--hosts", "one,two", "-n", "2", "-l"},
                                               {"join", "0:bare=to out\n", "1:complain=to err", "1:bare=half"})));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(sorted_lines(outcome.out), (std::set<std::string>{"[0] to out", "[1] half"}));
    EXPECT_EQ(outcome.err, "[1] to err\n");
}

TEST_F(Hosts, input_goes_to_node_0_whole) {
    agent();
    std::string input;
    for (int i = 0; i < 100'000; ++i) input += std::to_string(i) + "\n";
    const std::string expected = run({.words = kumi_run_actor({"-n", "1"}, {"join", "input"}), .input = input}).out;
    ASSERT_TRUE(contains(expected, " bytes, sum ")) << expected;
    Command typed = on_hosts(actor({"--hosts", "one,two", "-n", "2"}, {"join", "0:input"}));
    typed.input = input;
    EXPECT_EQ(run(typed).out, expected);
    // A file is always ready to be read, and tells no events.
    const std::string file = folder_.write("input", input, false);
    Command from_file = on_hosts(actor({"--hosts", "one,two", "-n", "2"}, {"join", "0:input"}));
    from_file.words.insert(from_file.words.begin(), {"sh", "-c", "exec \"$@\" < '" + file + "'", "sh"});
    EXPECT_EQ(run(from_file).out, expected);
    // Nobody has to read it.
    Command unread = on_hosts(actor({"--hosts", "one,two", "-n", "2"}, {"join"}));
    unread.input = input;
    EXPECT_EQ(run(unread).code, 0);
}

TEST_F(Hosts, nothing_is_lost_on_a_slow_reader_and_one_who_has_seen_enough_ends_the_job) {
    agent();
    Command flood = on_hosts(actor({"--hosts", "one,two", "-n", "2"}, {"join", "flood=3000000"}));
    flood.words.insert(flood.words.begin(), {"sh", "-c", "\"$@\" | (sleep 2; wc -c)", "sh"});
    const Outcome late = run(flood);
    EXPECT_EQ(late.err, "");
    EXPECT_EQ(std::atol(late.out.c_str()), 6'000'000);
    Command endless = on_hosts(actor({"--hosts", "one,two", "-n", "2"}, {"join", "flood=0"}));
    endless.words.insert(endless.words.begin(), {"sh", "-c", "\"$@\" | head -1 | wc -l", "sh"});
    EXPECT_EQ(run(endless).out, "1\n");
}

TEST_F(Hosts, nodes_find_folder_and_environment_but_for_what_is_about_a_host) {
    // Of its own a host has hardly any environment, and starts elsewhere.
    agent("cd / && exec env -i PATH=/bin:/usr/bin TMPDIR=/tmp/of-$1 $(env | grep KUMI_TEST_MARK) sh -c \"$2\"");
    Command command = on_hosts({"--hosts", "one,two", "-n", "2", "--no-join", "-x", "ADDED=by option", "sh", "-c",
                                "echo $PWD $(pwd) $CARRIED, $ADDED, ${SSH_CONNECTION-none} ${HOSTNAME-none} $TMPDIR"});
    command.environment = {"CARRIED=some  = text", "ADDED=otherwise", "SSH_CONNECTION=of the front end",
                           "HOSTNAME=front", "TMPDIR=/tmp/of-front"};
    command.folder = folder_.path();
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.err, "");
    const std::string start = folder_.path() + " " + folder_.path() + " some = text, by option, none none /tmp/of-";
    EXPECT_EQ(sorted_lines(outcome.out), (std::set<std::string>{start + "one", start + "two"}));
}

TEST_F(Hosts, the_cluster_file_reaches_nodes_though_hosts_do_not_have_it) {
    // What runs the node passes on its descriptors, as shells do.
    const std::string file = folder_.write(
        "cluster.toml", "[[network]]\nname = \"lan\"\n[[host]]\nname = \"one\"\nslots = 2\n[[host]]\nname = \"two\"\n",
        false);
    agent("rm -f '" + file + "'; exec sh -c \"$2\"");
    const Outcome outcome =
        run(on_hosts({"--cluster", file, "-n", "3", "--no-join", "sh", "-c", "sh -c 'grep -c host $KUMI_CLUSTER'"}));
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(outcome.out, "2\n2\n2\n");
}

TEST_F(Hosts, unless_told_otherwise_the_agent_is_ssh_which_asks_for_nothing) {
    folder_.write("ssh", "#!/bin/sh\necho \"$@\" >> '" + folder_.path() +
                             "/words'\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nexec sh -c \"$2\"\n");
    const std::string path = "PATH=" + folder_.path() + ":" + std::getenv("PATH");
    expect_ring(
        run({.words = kumi_run({"--hosts", "one:2", "-n", "2", "--start-timeout", "40", example("02_ring"), "5"}),
             .environment = {path}}),
        2, 5);
    EXPECT_TRUE(is_one_line(file_text(folder_.path() + "/words"),
                            "-T -oBatchMode=yes .*-oConnectTimeout=40 one exec '.*/kumi' host-helper"));
}

TEST_F(Hosts, this_host_needs_no_agent) {
    agent("echo $1 is asked >&2; exec sh -c \"$2\"");
    Command alone = on_hosts({"--hosts", "localhost:3", "-n", "3", example("02_ring"), "20"});
    alone.words[3] = "/no/such/agent"; // after kumi run --rsh
    expect_ring(run(alone), 3, 20);
    Command both = on_hosts({"--hosts", "localhost:2,two", "-n", "3", example("02_ring"), "20"});
    expect_ring(run(both), 3, 20);
    folder_.write("agent", "#!/bin/sh\n[ $1 != localhost ] && exec sh -c \"$2\"\n");
    expect_ring(run(both), 3, 20);
}

TEST_F(Hosts, an_agent_that_does_not_end_is_not_waited_for) {
    agent("sh -c \"$2\"; exec sleep 1000");
    expect_ring(run(on_hosts({"--hosts", "one,two", "-n", "2", example("02_ring"), "5"})), 2, 5);
}

// ---- ends

TEST_F(Hosts, the_first_failure_is_named_with_its_host_and_decides_the_exit_code) {
    agent();
    const auto ended = [&](const std::string& step, int code, const std::string& cause) {
        const Outcome outcome = run(on_hosts(actor({"--hosts", "one:2,two", "-n", "3"}, {"join", step, "wait"})));
        EXPECT_EQ(outcome.code, code);
        EXPECT_TRUE(is_one_line(without_backtraces(outcome.err),
                                "kumi run: node 2 on two \\(pid [0-9]+\\) " + cause + "; ending 2 nodes"));
    };
    ended("2:exit=7", 7, "exited with code 7");
    ended("2:abort", 134, "was killed by signal 6 \\(Aborted\\)");
    ended("2:exit=0", 1, "exited with code 0 without leaving the job: .*");
}

TEST_F(Hosts, a_node_that_does_not_join_is_named_with_its_host) {
    agent();
    Command command =
        on_hosts(actor({"--hosts", "one:2,two", "-n", "3", "--join-timeout", "2"}, {"first:forever", "join", "wait"}));
    command.environment.push_back("ACTOR_FOLDER=" + folder_.path());
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(is_one_line(
        outcome.err,
        "kumi run: node [0-2] on (one|two) did not join within 2 s; --join-timeout waits longer; ending 3 nodes"));
}

TEST_F(Hosts, signals_reach_all_nodes) {
    agent();
    for (const auto& [name, number] : {std::pair{"TERM", SIGTERM}, {"INT", SIGINT}, {"USR1", SIGUSR1}}) {
        Running command(on_hosts(actor({"--hosts", "one,two", "-n", "2"},
                                       {std::string("handle=") + name, "join", "say=ready", "until_signal"})));
        ASSERT_TRUE(command.printed("ready", 2));
        command.signal(number);
        const Outcome outcome = command.finish();
        EXPECT_EQ(outcome.code, number == SIGUSR1 ? 0 : 128 + number);
        for (const char* node : {"0", "1"})
            EXPECT_TRUE(contains(outcome.out, "node " + std::string(node) + ": got signal " + std::to_string(number)))
                << outcome.out;
        const std::string told =
            "kumi run: ended by signal " + std::to_string(number) + " \\([A-Za-z]+\\), passed on to 2 nodes\n";
        EXPECT_TRUE(matches(outcome.err, number == SIGUSR1 ? "" : told)) << outcome.err;
    }
}

TEST_F(Hosts, a_stopped_job_goes_on_when_it_is_continued) {
    agent();
    Running command(
        on_hosts(actor({"--hosts", "one,two", "-n", "2"}, {"handle=USR1", "join", "say=ready", "until_signal"})));
    ASSERT_TRUE(command.printed("ready", 2));
    const auto stopped = [&] {
        std::size_t count = 0;
        for (const std::string& process : processes_marked(command.mark()))
            count +=
                contains(file_text("/proc/" + std::to_string(std::atoi(process.c_str())) + "/status"), "State:\tT");
        return count;
    };
    command.signal(SIGTSTP);
    EXPECT_TRUE(comes_true([&] { return stopped() == 3; }, 10s)) << "kumi run and both nodes: " << stopped();
    command.signal(SIGCONT);
    EXPECT_TRUE(comes_true([&] { return stopped() == 0; }, 10s)) << stopped();
    command.signal(SIGUSR1);
    EXPECT_EQ(command.finish().code, 0);
}

TEST_F(Hosts, killing_kumi_run_ends_the_nodes_on_all_hosts) {
    agent("sh -c \"$2\""); // a shell stays between kumi run and its helper
    Running command(on_hosts(
        actor({"--hosts", "one:2,two", "-n", "3"}, {"ignore=TERM", "ignore=HUP", "join", "say=ready", "wait"})));
    ASSERT_TRUE(command.printed("ready", 3));
    command.signal(SIGKILL);
    EXPECT_TRUE(comes_true([&] { return processes_marked(command.mark()).empty(); }, 10s)) << command.left_behind();
    EXPECT_EQ(command.finish().code, 137);
}

TEST_F(Hosts, a_helper_that_is_killed_is_noticed_and_its_host_named) {
    agent();
    Running command(on_hosts(actor({"--hosts", "one:2,two", "-n", "3"}, {"join", "say=ready", "wait"})));
    ASSERT_TRUE(command.printed("ready", 3));
    ASSERT_TRUE(signal_process(command.mark(), kumi_command + " host-helper", SIGKILL));
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(is_one_line(
        outcome.err,
        "kumi run: host (one|two) is lost: [^ ]*/agent was killed by signal 9 \\(Killed\\); ending [12] nodes?"));
}

TEST_F(Hosts, a_helper_without_kumi_run_ends) {
    const Outcome outcome = run({.words = {kumi_command, "host-helper"}});
    EXPECT_EQ(outcome.code, 1);
    const Outcome garbage =
        run({.words = {kumi_command, "host-helper"}, .input = "what is this? nothing that it knows"});
    EXPECT_EQ(garbage.code, 1);
    EXPECT_TRUE(is_one_line(
        garbage.err,
        "kumi host-helper: what came is no frame of this version of Kumi; kumi run starts it, nobody else does"));
}

// ---- what cannot work

TEST_F(Hosts, hosts_and_places_that_are_none) {
    agent();
    const std::string file = folder_.write("cluster.toml", "[[host]]\nname = \"one\"\nslots = 2\n", false);
    expect_refusal({"--hosts", "one:x", "-n", "1", "true"},
                   "--hosts: \"one:x\": \"x\" is no number of slots; write it like a:2");
    expect_refusal({"--hosts", "one,,two", "-n", "1", "true"}, "--hosts: \"\" is no host name; write hosts like .*");
    expect_refusal({"--hosts", "one,one", "-n", "1", "true"}, "--hosts: the host \"one\" is there twice; .*");
    expect_refusal({"--hosts", "one,two", "-n", "3", "true"},
                   "-n 3: 3 nodes wanted, and the 2 hosts have 2 slots in all: .*");
    expect_refusal({"--hosts", "one", "-n", "1", "--place", "well", "true"},
                   "--place: well: write pack, spread, or a number like 2-per-host");
    expect_refusal({"--hosts", "one:3", "-n", "3", "--place", "2-per-host", "true"},
                   "-n 3: 2-per-host: only 2 of 3 nodes fit; .*");
    expect_refusal({"-n", "1", "--place", "pack", "true"}, "--place: on which hosts\\? .*");
    expect_refusal({"--cluster", file, "--hosts", "one,two", "-n", "1", "true"},
                   "--hosts: " + file + " says nothing of a host two; it has one");
    expect_refusal({"--cluster", file, "-n", "3", "true"}, "-n 3: 3 nodes wanted, and the host has 2 slots in all: .*");
    expect_refusal({"--cluster", folder_.path() + "/none", "-n", "1", "true"},
                   "reading the cluster file .*/none: No such file or directory");
    Command by_variable = on_hosts({"--hosts", "two", "-n", "1", "true"});
    by_variable.environment.push_back("KUMI_CLUSTER=" + file);
    EXPECT_TRUE(
        is_one_line(run(by_variable).err, "kumi run: --hosts: " + file + " says nothing of a host two; it has one"));
}

TEST_F(Hosts, an_agent_that_is_not_there_or_fails) {
    expect_refusal({"--hosts", "one", "-n", "1", "true"}, "--rsh: .*/agent: no such program");
    agent("[ $1 = one ] && exec sh -c \"$2\"; echo one line; echo >&2 some lines; echo \"connect to $1: Connection "
          "refused\" >&2; exit 255");
    expect_refusal({"--hosts", "one,two", "-n", "2", "--no-join", "sleep", "1000"},
                   "host two: .*/agent ended with code 255: connect to two: Connection refused(; ending 1 node)?");
    Command by_variable{.words = kumi_run({"--hosts", "two", "-n", "1", "true"}),
                        .environment = {"KUMI_RSH=" + folder_.path() + "/agent -v"}};
    EXPECT_TRUE(contains(run(by_variable).err, "host two: ")) << "the first word is a program, the others are its own";
}

TEST_F(Hosts, hosts_that_do_not_answer_are_named_at_the_deadline) {
    agent("[ $1 = one ] && exec sh -c \"$2\"; exec sleep 1000");
    expect_refusal({"--hosts", "one,two,three", "-n", "3", "--start-timeout", "3", "--no-join", "sleep", "1000"},
                   "hosts two, three did not answer within 3 s: up and reachable, without a password, by .*/agent\\? "
                   "--start-timeout waits longer; ending 1 node");
}

TEST_F(Hosts, without_a_time_for_starting_no_host_is_late) {
    agent("sleep 0.2; exec sh -c \"$2\"");
    expect_ring(run(on_hosts({"--hosts", "one", "-n", "1", "--start-timeout", "0", example("02_ring"), "5"})), 1, 5);
}

TEST_F(Hosts, a_signal_does_not_wait_for_hosts_that_do_not_answer) {
    agent("[ $1 = one ] && exec sh -c \"$2\"; exec sleep 1000");
    Running command(
        on_hosts({"--hosts", "one,two", "-n", "2", "--no-join", "sh", "-c", "echo ready; exec sleep 1000"}));
    ASSERT_TRUE(command.printed("ready"));
    const auto sent = Clock::now();
    command.signal(SIGINT);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, 130);
    EXPECT_LT(outcome.ended - sent, 10s);
}

TEST_F(Hosts, a_host_without_kumi) {
    agent("exec sh -c \"exec /no/such/place/kumi host-helper\"");
    expect_refusal({"--hosts", "one", "-n", "1", "true"},
                   "host one: .*/kumi cannot be run there, install Kumi at the same place on all hosts \\(.*/agent "
                   "ended with code 127: .*not found.*\\)");
}

TEST_F(Hosts, a_host_with_another_version_of_kumi) {
    agent("printf '\\nkumi-host-helper 0.0.9-3.1 1700000000000000000 2\\n'; exec sleep 1000");
    expect_refusal(
        {"--hosts", "one", "-n", "1", "true"},
        "host one has Kumi 0.0.9-3.1 in .*/kumi, and this is Kumi [0-9.]+-[0-9.]+: install the same on all hosts");
}

TEST_F(Hosts, a_host_that_speaks_garbage) {
    const std::string hello = run({.words = {kumi_command, "host-helper"}}).out;
    const std::string file = folder_.write("hello", hello + std::string(64, '\xff'), false);
    agent("cat '" + file + "'; exec sleep 1000");
    expect_refusal({"--hosts", "one", "-n", "1", "true"},
                   "host one is lost: what came is no frame of this version of Kumi");
}

TEST_F(Hosts, a_host_that_answers_without_end) {
    agent("exec yes to all");
    expect_refusal({"--hosts", "one", "-n", "1", "true"},
                   "host one: not Kumi's helper answers by .*/agent, but something that starts with \"to all\"");
}

TEST_F(Hosts, a_clock_that_differs_is_told_and_the_job_runs) {
    // Reads the hello, which two lines are, and puts another time into it.
    agent("exec 3<&0; sh -c \"$2\" <&3 | { read -r empty; read -r mark version clock cores; echo; echo $mark $version "
          "$((clock - 3600000000000)) $cores; exec cat; }");
    const Outcome outcome = run(on_hosts({"--hosts", "one", "-n", "1", example("02_ring"), "5"}));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_TRUE(contains(outcome.out, ring_result(1, 5))) << outcome.out;
    EXPECT_TRUE(is_one_line(
        outcome.err, "kumi run: warning: the clock of one is (3600\\.[0-9]|3599\\.[0-9]) s behind this host's; .*"));
}

TEST_F(Hosts, programs_and_folders_that_hosts_do_not_have) {
    agent();
    expect_refusal({"--hosts", "one,two", "-n", "2", "./no-such-program"},
                   "host (one|two): ./no-such-program: no such program");
    agent("cd /; rmdir '" + folder_.path() + "/gone'; exec sh -c \"$2\"");
    std::filesystem::create_directory(folder_.path() + "/gone");
    Command command = on_hosts({"--hosts", "one", "-n", "1", "true"});
    command.folder = folder_.path() + "/gone";
    EXPECT_TRUE(is_one_line(run(command).err, "kumi run: host one: " + folder_.path() +
                                                  "/gone, where kumi run was started, cannot be entered there: "
                                                  "No such file or directory; cd to a folder that all hosts have"));
}

// ---- in the lab

namespace {

class HostsInLab : public Lab {};

} // namespace

TEST_F(HostsInLab, twelve_nodes_run_on_the_papers_cluster) {
    LAB_OR_SKIP();
    // The other hosts do not have this file: a host's /tmp is its own.
    ASSERT_EQ(exec("front", {"cp", figure3, "/tmp/cluster.toml"}).code, 0);
    const Outcome hello = run(from_front({"--cluster", "/tmp/cluster.toml", "-n", "12", example("01_hello")}));
    EXPECT_EQ(hello.code, 0);
    EXPECT_EQ(hello.err, "");
    std::set<std::string> expected;
    for (int node = 0; node < 12; ++node)
        expected.insert("hello from node " + std::to_string(node) + " of 12 on " +
                        (node < 8 ? "a" + std::to_string(node / 2) : "b" + std::to_string(node - 8)));
    EXPECT_EQ(sorted_lines(hello.out), expected);
    expect_ring(run(from_front({"--cluster", "/tmp/cluster.toml", "-n", "12", example("02_ring"), "20"})), 12, 20);
    const Outcome carriers =
        run(from_front({"--cluster", "/tmp/cluster.toml", "--hosts", "b1,a0:2,a1", "-n", "4", program("carriers")}));
    EXPECT_EQ(sorted_lines(carriers.out),
              (std::set<std::string>{"0: - lan lan lan", "1: lan - shmem myrinet", "2: lan shmem - myrinet",
                                     "3: lan myrinet myrinet -"}));
    EXPECT_EQ(carriers.err, "");
}

TEST_F(HostsInLab, a_multicast_goes_over_the_lan_once_for_each_cluster) {
    LAB_OR_SKIP();
    ASSERT_EQ(exec("front", {"cp", figure3, "/tmp/cluster.toml"}).code, 0);
    for (const int bytes : {20'000, 400'000}) { // whole, and in blocks
        constexpr double times = 10;
        const Outcome spread = run(
            from_front({"--cluster", "/tmp/cluster.toml", "-n", "12", program("spread"), std::to_string(bytes), "10"}));
        EXPECT_EQ(spread.code, 0) << spread.err;
        std::map<std::string, double> carried;
        for (const std::string& line : lines_of(spread.out))
            carried[line.substr(0, line.find(' '))] = std::stod(line.substr(line.find(' ')));
        // Three of the four hosts of a cluster get it from the first, by their own network; then each second node by
        // shared memory.
        const double heads = 12'000; // of messages, answers and what asks for both, each time
        EXPECT_NEAR(carried["lan"], times * bytes, times * heads) << spread.out;
        EXPECT_NEAR(carried["myrinet"], 3 * times * bytes, times * heads) << spread.out;
        EXPECT_NEAR(carried["gigabit"], 3 * times * bytes, times * heads) << spread.out;
        EXPECT_NEAR(carried["shmem"], 4 * times * bytes, times * heads) << spread.out;
    }
}

TEST_F(HostsInLab, without_a_cluster_file_nodes_look_around) {
    LAB_OR_SKIP();
    expect_ring(run(from_front({"--hosts", "a[0-1]:3,b0:2", "-n", "8", example("02_ring"), "20"})), 8, 20);
    const Outcome carriers = run(from_front({"--hosts", "a[0-1]:2,b0", "-n", "5", program("carriers")}));
    EXPECT_EQ(carriers.code, 0);
    EXPECT_EQ(carriers.err, "");
    // what is fast is measured, and may come out otherwise on a busy machine
    for (const std::string& line : lines_of(carriers.out))
        EXPECT_EQ(contains(line, " shmem "), line[0] != '4') << carriers.out;
}

TEST_F(HostsInLab, ends_are_as_on_one_machine) {
    LAB_OR_SKIP();
    const auto actor = [&](const Words& steps) {
        Words words{"--cluster", figure3, "-n", "12", program("actor")};
        words.insert(words.end(), steps.begin(), steps.end());
        return from_front(words);
    };
    const Outcome failed = run(actor({"join", "10:exit=7", "wait"}));
    EXPECT_EQ(failed.code, 7);
    EXPECT_TRUE(
        is_one_line(failed.err, "kumi run: node 10 on b2 \\(pid [0-9]+\\) exited with code 7; ending 11 nodes"));

    Running interrupted(actor({"handle=INT", "join", "say=ready", "until_signal"}));
    ASSERT_TRUE(interrupted.printed("ready", 12));
    interrupted.signal(SIGINT);
    const Outcome outcome = interrupted.finish();
    EXPECT_EQ(outcome.code, 130);
    for (int node = 0; node < 12; ++node)
        EXPECT_TRUE(contains(outcome.out, "node " + std::to_string(node) + ": got signal 2")) << outcome.out;
    EXPECT_TRUE(is_one_line(outcome.err, "kumi run: ended by signal 2 \\(Interrupt\\), passed on to 12 nodes"));

    Running killed(actor({"ignore=TERM", "ignore=HUP", "join", "say=ready", "wait"}));
    ASSERT_TRUE(killed.printed("ready", 12));
    ASSERT_TRUE(signal_process(killed.mark(), kumi_command + " run ", SIGKILL));
    EXPECT_TRUE(comes_true([&] { return processes_marked(killed.mark()).empty(); }, 10s)) << killed.left_behind();
    killed.finish();

    // Its helper, and what leads there: it is the same to a host's nodes.
    for (const auto& [what, how] : {std::pair{kumi_command + " host-helper", "ended with code 137"},
                                    {kumi_command + " lab exec b", "was killed by signal 9 \\(Killed\\)"}}) {
        Running command(actor({"ignore=TERM", "join", "say=ready", "wait"}));
        ASSERT_TRUE(command.printed("ready", 12));
        ASSERT_TRUE(signal_process(command.mark(), what, SIGKILL));
        const Outcome lost = command.finish();
        EXPECT_EQ(lost.code, 1);
        EXPECT_TRUE(is_one_line(lost.err, "kumi run: host [ab][0-3] is lost: .*/kumi lab exec " + std::string(how) +
                                              "; ending 1[01] nodes"));
    }
}

TEST_F(HostsInLab, what_one_host_cannot_do_is_told_with_its_name) {
    LAB_OR_SKIP();
    const auto refused = [&](const Words& words, const std::string& pattern) {
        const Outcome outcome = run(from_front(words));
        EXPECT_EQ(outcome.code, 1);
        EXPECT_TRUE(is_one_line(outcome.err, "kumi run: " + pattern));
    };
    refused({"--hosts", "a0,c7", "-n", "2", "--no-join", "sleep", "1000"},
            "host c7: .*/kumi lab exec ended with code 255: kumi: there is no host \"c7\" .*");
    ASSERT_EQ(exec("a0", {"cp", "/bin/sleep", "/tmp/program"}).code, 0);
    refused({"--hosts", "a0,a1", "-n", "2", "--no-join", "/tmp/program", "1000"},
            "host a1: /tmp/program: no such program(; ending 1 node)?");
    ASSERT_EQ(exec("front", {"mkdir", "/tmp/folder"}).code, 0);
    Command elsewhere = from_front({"--hosts", "a0", "-n", "1", "true"});
    elsewhere.words.insert(elsewhere.words.begin() + 4, {"env", "--chdir=/tmp/folder"});
    EXPECT_TRUE(is_one_line(run(elsewhere).err,
                            "kumi run: host a0: /tmp/folder, where kumi run was started, cannot be entered there: .*"));
}
