// The same programs under launchers of others: hydra, Open MPI, Slurm. And what can be wrong with a launcher.
#include "cluster/command.hpp"
#include "cluster/slurm.hpp"
#include "kumi/lab/network/namespaces.hpp"

#include <sys/socket.h>

using namespace kumi::cluster_test;

namespace {

// Sanitizers need no launcher's company: the code of both sides runs under them in the unit tests.
#define KUMI_NEEDS(program)                                                                                            \
    if (sanitized) KUMI_SKIP(skips::plain_build_only);                                                                 \
    if (!is_installed(program)) KUMI_SKIP(skips::not_installed(program))

#define KUMI_NEEDS_PMIX()                                                                                              \
    if (!std::filesystem::exists(KUMI_BUILD_DIR "/lib/kumi/libkumi-boot-pmix.so"))                                     \
    KUMI_SKIP(skips::built_without("PMIx"))

Words hydra(const Words& words) {
    Words all{"mpiexec.hydra"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

/// mpirun of Open MPI; it leaves files in TMPDIR.
struct OpenMpi {
    Command command(const Words& words, Words environment = {}) const {
        Words all{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"};
        all.insert(all.end(), words.begin(), words.end());
        environment.push_back("TMPDIR=" + folder.path());
        return {.words = all, .environment = environment};
    }
    Outcome operator()(const Words& words, const Words& environment = {}) const {
        return run(command(words, environment));
    }
    Folder folder;
};

/// The job fails, and one of the lines says why; launchers add lines of their own. Nobody believes to be alone.
void expect_launch_refused(const Outcome& outcome, const std::string& pattern) {
    EXPECT_NE(outcome.code, 0);
    EXPECT_FALSE(contains(outcome.out, "of 1 on")) << outcome.out;
    const auto lines = lines_of(outcome.err);
    const auto says_why = [&](const std::string& line) { return matches(line, "kumi: " + pattern); };
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), says_why))
        << "no line like: " << pattern << "\nbut: " << outcome.err;
}

/// Starts a job of three nodes that have joined and say that they are ready, and aborts one: the launcher ends the
/// others, and a line says what happened.
void expect_death_noticed(const Command& command, const std::string& pattern) {
    Running job(command);
    ASSERT_TRUE(job.printed(": ready\n", 3));
    const auto nodes = processes_running(program("actor"), job.mark());
    ASSERT_EQ(nodes.size(), 3u) << job.left_behind();
    ASSERT_EQ(::kill(nodes[1], SIGABRT), 0);
    const Outcome outcome = job.finish(); // which checks that nobody is left
    EXPECT_NE(outcome.code, 0);           // hydra's is that of the node, or of one that it ended
    const std::string said = outcome.out + outcome.err;
    const auto lines = lines_of(said);
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return matches(line, pattern);
    })) << said;
}

} // namespace

// ---- hydra: PMI-1

TEST(Launchers, hydra_starts_the_examples) {
    KUMI_NEEDS("mpiexec.hydra");
    expect_hello(run({.words = hydra({"-n", "4", example("01_hello")})}));
    expect_ring(run({.words = hydra({"-n", "5", example("02_ring"), "20"})}), 5, 20);
    expect_ring(run({.words = hydra({"-n", "1", example("02_ring"), "20"})}), 1, 20);
}

TEST(Launchers, hydra_starts_them_over_a_port_too) {
    KUMI_NEEDS("mpiexec.hydra");
    expect_ring(run({.words = hydra({"-pmi-port", "-n", "3", example("02_ring"), "20"})}), 3, 20);
}

TEST(Launchers, hydra_starts_them_over_udp) {
    KUMI_NEEDS("mpiexec.hydra");
    expect_ring(run({.words = hydra({"-n", "3", example("02_ring"), "20"}), .environment = {"KUMI_DEVICE=udp"}}), 3,
                20);
}

TEST(Launchers, many_nodes_start_under_hydra) {
    KUMI_NEEDS("mpiexec.hydra");
    expect_ring(run({.words = hydra({"-n", "64", example("02_ring"), "2"})}), 64, 2);
}

TEST(Launchers, hydra_sees_a_node_that_dies_and_ends_the_job) {
    KUMI_NEEDS("mpiexec.hydra");
    expect_death_noticed({.words = hydra({"-n", "3", program("actor"), "join", "say=ready", "wait"})},
                         "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES");
}

// ---- Open MPI: PMIx

TEST(Launchers, mpirun_starts_the_examples) {
    KUMI_NEEDS("mpirun.openmpi");
    KUMI_NEEDS_PMIX();
    const OpenMpi mpirun;
    expect_hello(mpirun({"-n", "4", example("01_hello")}));
    expect_ring(mpirun({"-n", "5", example("02_ring"), "20"}), 5, 20);
    expect_ring(mpirun({"-n", "3", example("02_ring"), "20"}, {"KUMI_DEVICE=udp"}), 3, 20);
}

TEST(Launchers, mpirun_sees_a_node_that_dies_and_ends_the_job) {
    KUMI_NEEDS("mpirun.openmpi");
    KUMI_NEEDS_PMIX();
    const OpenMpi mpirun;
    expect_death_noticed(mpirun.command({"-n", "3", program("actor"), "join", "say=ready", "wait"}),
                         ".*exited on signal 6 \\(Aborted\\).*");
}

TEST(Launchers, without_the_plugin_a_program_under_mpirun_says_what_to_install) {
    KUMI_NEEDS("mpirun.openmpi");
    expect_launch_refused(OpenMpi{}({"-n", "2", example("01_hello")}, {"KUMI_PLUGINS=/no/such/folder"}),
                   "the launcher of this process speaks PMIx, and libkumi-boot-pmix.so, .* is not in /no/such/folder: "
                   "install libpmix-dev, .*");
}

TEST(Launchers, programs_do_not_load_pmix_by_themselves) {
    if (sanitized) KUMI_SKIP(skips::plain_build_only); // the same in every build
    const Outcome libraries = run({.words = {"ldd", example("01_hello")}});
    EXPECT_EQ(libraries.code, 0) << libraries.err;
    EXPECT_TRUE(contains(libraries.out, "libc.so")) << "it tells of libraries: " << libraries.out;
    EXPECT_FALSE(contains(libraries.out, "pmix")) << libraries.out;
}

TEST(Launchers, a_pmix_launcher_that_is_gone_is_an_error) {
    if (sanitized) KUMI_SKIP(skips::plain_build_only);
    expect_launch_refused(
        run({.words = {example("01_hello")}, .environment = {"PMIX_NAMESPACE=nobody", "PMIX_RANK=0"}}), ".*PMIx.*");
}

// ---- Slurm

TEST(Launchers, srun_starts_the_examples_through_pmi2) {
    KUMI_NEEDS("srun");
    if (const std::string missing = Slurm::missing(); !missing.empty()) KUMI_SKIP(skips::not_installed(missing));
    const Slurm slurm;
    ASSERT_TRUE(slurm.is_up());
    expect_hello(slurm.srun({"--mpi=pmi2", example("01_hello")}));
    expect_ring(slurm.srun({"--mpi=pmi2", example("02_ring"), "20"}), 4, 20);
    expect_ring(slurm.srun({"--mpi=pmi2", example("02_ring"), "20"}, {"KUMI_DEVICE=udp"}), 4, 20);
}

TEST(Launchers, srun_starts_the_examples_through_pmix) {
    KUMI_NEEDS("srun");
    KUMI_NEEDS_PMIX();
    if (const std::string missing = Slurm::missing(); !missing.empty()) KUMI_SKIP(skips::not_installed(missing));
    const Slurm slurm;
    ASSERT_TRUE(slurm.is_up());
    expect_hello(slurm.srun({"--mpi=pmix", example("01_hello")}));
    expect_ring(slurm.srun({"--mpi=pmix", example("02_ring"), "20"}), 4, 20);
}

TEST(Launchers, srun_without_pmi_is_refused_with_what_to_type) {
    KUMI_NEEDS("srun");
    if (const std::string missing = Slurm::missing(); !missing.empty()) KUMI_SKIP(skips::not_installed(missing));
    const Slurm slurm;
    ASSERT_TRUE(slurm.is_up());
    expect_launch_refused(
        slurm.srun({"--mpi=none", example("01_hello")}),
        "Slurm runs this as one of 4 tasks, .*: start it with srun --mpi=pmix or srun --mpi=pmi2, or with kumi run");
    // kumi run inside a step is the innermost launcher.
    expect_ring(slurm.srun({"-N1", "-n1", "--mpi=pmi2", kumi_command, "run", "-n", "3", example("02_ring"), "20"}), 3,
                20);
}

// ---- launchers that are none

namespace {

/// One end of a socket that programs inherit as PMI_FD.
struct PmiSocket {
    PmiSocket() {
        int pair[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        ours = pair[0], theirs = pair[1];
        ::fcntl(ours, F_SETFD, FD_CLOEXEC);
    }
    ~PmiSocket() {
        ::close(ours);
        ::close(theirs);
    }
    Command hello() const {
        return {.words = {example("01_hello")},
                .environment = {"PMI_FD=" + std::to_string(theirs), "PMI_RANK=0", "PMI_SIZE=2"}};
    }
    int ours = -1, theirs = -1;
};

} // namespace

TEST(Launchers, a_pmi_socket_that_is_closed_is_an_error) {
    expect_launch_refused(
        run({.words = {example("01_hello")}, .environment = {"PMI_FD=99", "PMI_RANK=0", "PMI_SIZE=2"}}),
        "PMI_FD=99 names no open socket: .*");
    PmiSocket socket;
    ::shutdown(socket.ours, SHUT_RDWR);
    expect_launch_refused(
        run(socket.hello()),
        "PMI_FD=[0-9]+, the launcher of this process, closed the connection at cmd=init: has it ended, .*");
}

TEST(Launchers, garbage_on_a_pmi_socket_is_an_error) {
    PmiSocket socket;
    ASSERT_GT(::write(socket.ours, "SSH-2.0-OpenSSH\r\n", 17), 0);
    expect_launch_refused(run(socket.hello()), "PMI_FD=[0-9]+: \"SSH-2.0-OpenSSH\\?\" is no line of PMI-1");
}

TEST(Launchers, a_pmi_server_that_is_silent_makes_no_job_of_one) {
    PmiSocket socket;
    Running hello(socket.hello());
    pollfd asked{socket.ours, POLLIN, 0};
    EXPECT_EQ(::poll(&asked, 1, 10'000), 1) << "it asks nothing";
    ::poll(nullptr, 0, 300);
    EXPECT_FALSE(processes_marked(hello.mark()).empty()) << "it does not wait for the answer"; // for 60 s; see Pmi
    ::shutdown(socket.ours, SHUT_RDWR);
    expect_launch_refused(hello.finish(), ".*closed the connection at cmd=init.*");
}

// ---- several hosts. Last, because an ordinary user's process changes for good when it makes hosts.

TEST(Launchers, nodes_on_two_hosts_find_the_network_that_joins_them) {
    KUMI_NEEDS("mpiexec.hydra");
    if (const auto reason = probes::no_two_hosts()) KUMI_SKIP(*reason);
    const auto hosts = kumi::lab::TwoHosts::make();
    ASSERT_TRUE(hosts) << hosts.error().text();
    // Nodes 0 and 2 on one host, node 1 on the other: slots are not node numbers.
    Words words;
    for (const unsigned host : {0u, 1u, 0u})
        for (const std::string& word :
             Words{words.empty() ? "mpiexec.hydra" : ":", "-n", "1", "nsenter", "--net=" + hosts->path(host), "env",
                   "KUMI_UDP_ADDRESS=" + hosts->address(host), example("02_ring"), "20"})
            words.push_back(word);
    expect_ring(run({.words = words}), 3, 20);
    expect_ring(run({.words = words, .environment = {"KUMI_DEVICE=udp"}}), 3, 20);
}
