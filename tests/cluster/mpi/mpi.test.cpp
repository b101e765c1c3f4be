// kumi run starts programs of an MPI, which know nothing of Kumi: it is their launcher, by PMIx or PMI-1.
#include "cluster/lab.hpp"

#include <fmt/format.h>
#include <set>

using namespace kumi::cluster_test;

namespace {

std::string mpi_program(const std::string& mpi) { return program("mpi_actor_" + mpi); }

/// Each with what it needs.
class Mpi : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (sanitized) KUMI_SKIP(skips::plain_build_only); // the code of both sides runs in unit tests
        if (!std::filesystem::exists(actor_)) KUMI_SKIP(skips::built_without(GetParam()));
        if (is_open_mpi() && !has_pmix()) KUMI_SKIP(skips::built_without("PMIx"));
    }

    static bool has_pmix() { return std::filesystem::exists(KUMI_BUILD_DIR "/libexec/kumi/kumi-pmix"); }
    static bool has_provider() { return std::filesystem::exists(KUMI_BUILD_DIR "/lib/libfabric/libkumi-fi.so"); }
    static bool is_open_mpi() { return std::string_view(GetParam()) == "openmpi"; }

    Words with_actor(Words options, const Words& steps) const {
        options.push_back(actor_);
        options.insert(options.end(), steps.begin(), steps.end());
        return options;
    }
    Outcome run_actor(const Words& options, const Words& steps) const {
        return run({.words = kumi_run(with_actor(options, steps))});
    }
    /// All ranks have found what they should, each on its host.
    static void expect_right(const Outcome& outcome, const std::vector<std::string>& hosts) {
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        std::set<std::string> expected;
        for (std::size_t rank = 0; rank < hosts.size(); ++rank)
            expected.insert(fmt::format("rank {} of {} on {}: right", rank, hosts.size(), hosts[rank]));
        const auto lines = lines_of(outcome.out);
        EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()), expected) << outcome.err;
    }
    /// The job ends because of one of its nodes, and the last line says why.
    static void expect_end(const Outcome& outcome, int code, const std::string& pattern) {
        EXPECT_EQ(outcome.code, code) << outcome.err;
        const auto lines = lines_of(outcome.err);
        EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                                [&](const std::string& line) { return matches(line, "kumi run: " + pattern); }),
                  1)
            << "not one line like: " << pattern << "\nbut: " << outcome.err;
        EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                                [](const std::string& line) { return line.starts_with("kumi run:"); }),
                  1)
            << outcome.err;
    }

    const std::string actor_ = mpi_program(GetParam());
};

std::string own_name() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}

/// What only Open MPI does.
class OpenMpi : public Mpi {
protected:
    /// A folder with a copy of the command, and a script in the place of its PMIx server.
    std::string kumi_with_server(const Folder& folder, const std::string& script) const {
        std::filesystem::create_directories(folder.path() + "/bin");
        std::filesystem::create_directories(folder.path() + "/libexec/kumi");
        std::filesystem::copy_file(kumi_command, folder.path() + "/bin/kumi");
        folder.write("libexec/kumi/kumi-pmix", "#!/bin/sh\n" + script + "\n");
        return folder.path() + "/bin/kumi";
    }
};

} // namespace

INSTANTIATE_TEST_SUITE_P(Of, OpenMpi, testing::Values("openmpi"));
INSTANTIATE_TEST_SUITE_P(Of, Mpi, testing::Values("openmpi", "mpich"),
                         [](const auto& which) { return std::string(which.param); });

// ---- what goes well

TEST_P(Mpi, ranks_find_each_other_on_this_host) {
    for (const std::size_t nodes : {1u, 2u, 7u})
        expect_right(run_actor({"-n", std::to_string(nodes)}, {"sum"}), std::vector(nodes, own_name()));
}

/// What a shell or Python starts is not known before. It finds its launcher.
TEST_P(Mpi, a_shell_may_start_the_program) {
    expect_right(run({.words = kumi_run({"-n", "2", "sh", "-c", "exec " + actor_ + " sum"})}), {2, own_name()});
}

TEST_P(Mpi, what_another_launcher_has_left_in_the_environment_is_not_believed) {
    const Words left{"PMIX_NAMESPACE=nobody", "PMIX_RANK=3", "PMI_FD=77", "PMI_RANK=9", "PMI_SIZE=50", "PMI_PORT=a:1"};
    expect_right(run({.words = kumi_run(with_actor({"-n", "2"}, {"sum"})), .environment = left}), {2, own_name()});
}

TEST_P(Mpi, variables_of_the_user_win) {
    const Outcome outcome =
        run({.words = kumi_run({"-n", "1", "-x", "OMPI_MCA_btl_vader_backing_directory=/here", "sh", "-c",
                                "echo $OMPI_MCA_btl_vader_backing_directory; exec " + actor_}),
             .environment = {}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "/here\n");
}

/// An agent that runs its command right here is as good as ssh. MPI's names of hosts are the system's.
TEST_P(Mpi, ranks_find_each_other_on_several_hosts) {
    const Folder folder;
    const std::string agent = folder.write("agent", "#!/bin/sh\nexec sh -c \"$2\"\n");
    const Words hosts{"--rsh", agent, "--hosts", "one:1,two:3,three:2", "-n", "6"};
    expect_right(run_actor(hosts, {"sum", "sum"}), std::vector<std::string>(6, own_name()));
}

/// In Open MPI each process asks for the others' addresses when it first needs them.
TEST_P(OpenMpi, addresses_are_fetched_from_other_hosts_when_they_are_needed) {
    const Folder folder;
    const std::string agent = folder.write("agent", "#!/bin/sh\nexec sh -c \"$2\"\n");
    const Words hosts{"--rsh", agent, "--hosts", "one:2,two:2", "-n", "4", "-x", "OMPI_MCA_pmix_base_collect_data=0"};
    expect_right(run_actor(hosts, {"sum"}), std::vector<std::string>(4, own_name()));
}

TEST_P(OpenMpi, a_program_that_uses_kumi_beside_mpi_joins_as_both) {
    const std::string both = example("09_mpi_multicast"); // of the system's own MPI
    if (!std::filesystem::exists(both)) KUMI_SKIP(skips::built_without("MPI"));
    const Outcome outcome = run({.words = kumi_run({"-n", "4", both})});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(matches(outcome.out, "(.|\n)*[1-9][0-9]* were to be told, and [1-9][0-9]* were\n(.|\n)*"))
        << outcome.out;
}

// ---- what goes wrong

TEST_P(Mpi, abort_ends_all_with_its_code) {
    expect_end(run_actor({"-n", "3"}, {"at=1", "abort=7", "wait"}), 7,
               "node 1 on [^ ]+ \\(pid [0-9]+\\) called MPI_Abort with code 7; ending 3 nodes");
    // A shell sees eight bits of a code; zero would be success.
    expect_end(run_actor({"-n", "2"}, {"at=0", "abort=256", "at=1", "wait"}), 1,
               any_node + "called MPI_Abort with code 256; ending 2 nodes");
}

TEST_P(Mpi, a_rank_that_dies_ends_the_others) {
    expect_end(run_actor({"-n", "3"}, {"at=2", "kill", "at=0", "wait"}), 137,
               "node 2 on [^ ]+ \\(pid [0-9]+\\) was killed by signal 9 \\(Killed\\); ending [12] nodes?");
    expect_end(run_actor({"-n", "2"}, {"at=1", "exit=3"}), 3,
               "node 1 on [^ ]+ \\(pid [0-9]+\\) exited with code 3; ending 1 node");
}

TEST_P(Mpi, a_rank_that_ends_without_finalize_is_an_error) {
    expect_end(run_actor({"-n", "3"}, {"at=1", "exit=0"}), 1,
               "node 1 on [^ ]+ \\(pid [0-9]+\\) exited with code 0 without calling MPI_Finalize; ending 2 nodes");
}

TEST_P(Mpi, a_program_that_never_calls_init_is_told) {
    expect_end(
        run_actor({"-n", "2"}, {"before"}), 1,
        ".*mpi_actor_[a-z]+ ended without joining the job: it called neither kumi::Job::join\\(\\) nor MPI_Init; "
        "--no-join runs programs that will not");
}

TEST_P(Mpi, spawning_more_processes_is_refused_and_hangs_nobody) {
    const Outcome outcome = run_actor({"-n", "2"}, {"spawn"});
    EXPECT_NE(outcome.code, 0); // Debian's MPICH refuses it without asking its launcher
    if (is_open_mpi())
        expect_end(outcome, 1,
                   "node [0-9]+ on [^ ]+ \\(pid [0-9]+\\): MPI_Comm_spawn is not supported under kumi run: start all "
                   "processes at once, or use the MPI's own mpirun; ending 2 nodes");
}

TEST_P(Mpi, a_job_that_takes_too_long_says_where_to_look) {
    const Outcome outcome = run_actor({"-n", "2", "--timeout", "2"}, {"wait"});
    EXPECT_EQ(outcome.code, 124);
    EXPECT_TRUE(
        matches(outcome.err,
                "(.|\n)*kumi run: warning: MPI does not say what its processes wait for; a debugger shows it: gdb -p "
                "[0-9]+ is node 0 on [^ ]+\n(.|\n)*"))
        << outcome.err;
}

// ---- PMIx

TEST_P(OpenMpi, the_end_of_the_pmix_server_ends_the_job) {
    Running job({.words = kumi_run(with_actor({"-n", "2"}, {"say=here", "wait"}))});
    ASSERT_TRUE(job.printed(": here\n", 2));
    const auto servers = processes_running(KUMI_BUILD_DIR "/libexec/kumi/kumi-pmix", job.mark());
    ASSERT_EQ(servers.size(), 1u) << job.left_behind();
    ASSERT_EQ(::kill(servers[0], SIGKILL), 0);
    expect_end(job.finish(), 1,
               any_node +
                   "cannot go on: the PMIx server of this host was killed by signal 9 \\(Killed\\); ending 2 nodes");
}

TEST_P(Mpi, without_pmix_an_open_mpi_program_is_refused_and_others_run) {
    const Folder folder;
    const std::string kumi = folder.path() + "/bin/kumi";
    std::filesystem::create_directories(folder.path() + "/bin");
    std::filesystem::copy_file(kumi_command, kumi);
    const Outcome outcome = run({.words = with_actor({kumi, "run", "-n", "2"}, {"sum"})});
    if (!is_open_mpi()) return expect_right(outcome, {2, own_name()});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(is_one_line(outcome.err,
                            "kumi run: .*/mpi_actor_openmpi uses Open MPI, which asks its launcher through "
                            "PMIx, and this Kumi was built without it: install libpmix-dev .*"));
}

TEST_P(OpenMpi, a_pmix_server_that_does_not_start_is_told_at_once_and_only_open_mpi_needs_it) {
    const Folder folder;
    const std::string kumi = kumi_with_server(folder, "exit 1");
    const auto begin = Clock::now();
    const Outcome refused = run({.words = with_actor({kumi, "run", "-n", "2"}, {"sum"})});
    EXPECT_EQ(refused.code, 1);
    EXPECT_TRUE(is_one_line(refused.err, "kumi run: the PMIx server, which MPI programs ask, did not start"));
    const Outcome other = run({.words = {kumi, "run", "-n", "2", "sh", "-c", "exec " + program("actor") + " join"}});
    EXPECT_EQ(other.code, 0) << other.err;
    EXPECT_LT(Clock::now() - begin, 8s) << "its end is seen, and not its deadline waited for";
}

TEST_P(OpenMpi, a_job_inside_another_has_servers_of_its_own) {
    const std::string inner = kumi_command + " run -n 2 ";
    expect_right(run({.words = kumi_run({"-n", "1", "--no-join", "sh", "-c", inner + actor_ + " sum"})}),
                 {2, own_name()});
    const std::string show = "sh -c 'echo $OMPI_MCA_btl_vader_backing_directory; exec " + actor_ + "'";
    const Outcome outcome =
        run({.words = kumi_run({"-n", "1", "sh", "-c",
                                "echo $OMPI_MCA_btl_vader_backing_directory; " + inner + show + "; exec " + actor_})});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto folders = lines_of(outcome.out);
    ASSERT_EQ(folders.size(), 3u) << outcome.out;
    EXPECT_TRUE(folders[0].starts_with("/")) << outcome.out;
    EXPECT_NE(folders[0], folders[1]);
    EXPECT_EQ(folders[1], folders[2]);
}

TEST_P(OpenMpi, settings_of_pmix_reach_the_processes) {
    const Outcome outcome = run({.words = kumi_run({"-n", "1", "sh", "-c", "echo $PMIX_MCA_gds; exec " + actor_}),
                                 .environment = {"PMIX_MCA_gds=hash"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "hash\n");
}

// ---- over Kumi

TEST_P(OpenMpi, messages_go_over_kumi_if_that_is_asked_for) {
    if (!has_provider()) KUMI_SKIP(skips::built_without("libfabric"));
    for (const char* const device : {"shmem", "udp"}) {
        const Outcome outcome =
            run({.words = kumi_run(with_actor({"-n", "4", "--mpi", "kumi", "--traffic"}, {"sum", "sum"})),
                 .environment = {std::string("KUMI_DEVICE=") + device}});
        EXPECT_TRUE(matches(outcome.out, fmt::format("(.|\n)*= {}: [0-9]+ messages, (.|\n)*", device))) << outcome.out;
        std::string ranks;
        for (const std::string& line : lines_of(outcome.out))
            if (line.starts_with("rank ")) ranks += line + "\n";
        EXPECT_EQ(std::count(ranks.begin(), ranks.end(), '\n'), 8) << outcome.err;
        EXPECT_EQ(ranks.find("wrong"), std::string::npos);
        EXPECT_EQ(outcome.code, 0) << outcome.err;
    }
    const Outcome native = run_actor({"-n", "2", "--traffic"}, {"sum"});
    EXPECT_TRUE(contains(native.out, "nobody sent anything")) << native.out;
}

TEST_P(OpenMpi, mpirun_runs_it_over_kumi_with_the_variables_that_kumi_prints) {
    if (!has_provider()) KUMI_SKIP(skips::built_without("libfabric"));
    const Folder folder;
    const std::string mpirun = "mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 " + actor_ + " sum";
    expect_right(run({.words = {"sh", "-c", "eval \"$(" + kumi_command + " env mpi)\"; exec " + mpirun},
                      .environment = {"TMPDIR=" + folder.path(), "KUMI_LOG=debug"}}),
                 {2, own_name()});
}

TEST_P(Mpi, over_kumi_is_refused_where_it_cannot_be) {
    const Folder folder;
    std::filesystem::create_directories(folder.path() + "/bin");
    std::filesystem::copy_file(kumi_command, folder.path() + "/bin/kumi");
    const Outcome outcome =
        run({.words = with_actor({folder.path() + "/bin/kumi", "run", "-n", "2", "--mpi", "kumi"}, {"sum"})});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(is_one_line(outcome.err, is_open_mpi()
                                             ? "kumi run: there is no libkumi-fi.so, by which MPI runs over Kumi, in "
                                               ".*: install libfabric-dev and build Kumi again"
                                             : "kumi run: .*/mpi_actor_mpich uses MPICH, which runs over its own "
                                               "networks; --mpi kumi is for Open MPI"));
}

TEST(MpiServers, their_program_removes_nothing_that_is_not_kumis) {
    if (sanitized) KUMI_SKIP(skips::plain_build_only);
    const std::string server = KUMI_BUILD_DIR "/libexec/kumi/kumi-pmix";
    if (!std::filesystem::exists(server)) KUMI_SKIP(skips::built_without("PMIx"));
    const Folder folder;
    folder.write("mine", "");
    for (const char* const third : {"3</dev/null", "3>&1", ""}) {
        const Outcome outcome =
            run({.words = {"sh", "-c", "exec " + server + " " + folder.path() + " job 0 a:1 " + third}});
        EXPECT_EQ(outcome.code, 2);
        EXPECT_TRUE(is_one_line(outcome.err, "kumi-pmix: kumi run starts this program .*"));
    }
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/mine"));
}

TEST(MpiServers, are_not_started_for_programs_of_kumi) {
    if (sanitized) KUMI_SKIP(skips::plain_build_only);
    Running job({.words = kumi_run({"-n", "2", program("actor"), "join", "say=ready", "wait"})});
    ASSERT_TRUE(job.printed(": ready\n", 2));
    const auto nodes = processes_running(program("actor"), job.mark());
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_TRUE(processes_running(KUMI_BUILD_DIR "/libexec/kumi/kumi-pmix", job.mark()).empty()) << job.left_behind();
    for (const pid_t node : nodes) {
        const std::string variables = '\0' + file_text("/proc/" + std::to_string(node) + "/environ");
        EXPECT_EQ(variables.find(std::string("\0PMI", 4)), std::string::npos) << variables;
    }
    job.signal(SIGTERM);
    job.finish();
}
