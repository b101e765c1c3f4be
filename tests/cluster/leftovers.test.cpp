// Nothing outlives a job: no process, no file. That no process is left is checked after every command of these tests;
// here are the ends that make it hard.
#include "cluster/command.hpp"

#include <set>
#include <sys/mount.h>

using namespace kumi::cluster_test;

namespace {

/// Folders of a job's own in the place of those where programs leave files: what lies there is the job's, whatever
/// others do on the machine at the same time. Where the system allows no mounts the job has a TMPDIR of its own only.
class OwnPlaces {
public:
    OwnPlaces() : is_private_(probes::has_namespaces(probes::Namespaces::of_hosts).value_or(false)) {
        for (const std::string& place : places) std::filesystem::create_directories(outside(place));
        std::filesystem::create_directories(outside(tmpdir));
        // A build that lies in /tmp is needed there, too; the folders that lead to it are no leftovers.
        if (is_build_hidden()) std::filesystem::create_directories(outside(KUMI_BUILD_DIR));
        before_ = files();
    }

    /// Writes a program for nodes, which starts a helper of its own and becomes the actor; answers where nodes find it.
    std::string write_script(const std::string& helper) {
        const std::string script =
            "#!/bin/sh\n" + helper + " >/dev/null 2>&1 </dev/null &\n\"" + program("actor") + "\" \"$@\"\n";
        std::ofstream(outside(script_path)) << script;
        std::filesystem::permissions(outside(script_path), std::filesystem::perms(0755));
        before_ = files();
        return inside(script_path);
    }

    Command command(const Words& words) const {
        Command command{.words = words, .environment = {"TMPDIR=" + inside(tmpdir)}};
        if (is_private_) command.prepare = [this] { return move_in(); };
        return command;
    }

    /// Whether all places are the job's own, and not TMPDIR alone.
    bool is_private() const { return is_private_; }

    /// All that has been made there since.
    std::set<std::string> leftovers() const {
        std::set<std::string> made;
        for (const std::string& file : files())
            if (before_.count(file) == 0) made.insert(file.substr(folder_.path().size()));
        return made;
    }

private:
    static inline const std::vector<std::string> places{"/dev/shm", "/run", "/var/tmp", "/tmp"};
    static constexpr const char* tmpdir = "/tmp/tmpdir";
    static constexpr const char* script_path = "/tmp/start.sh";

    /// Where the test finds what a job has at `path`, and where the job finds it.
    std::string outside(const std::string& path) const { return folder_.path() + path; }
    std::string inside(const std::string& path) const { return is_private_ ? path : outside(path); }
    bool is_build_hidden() const { return is_private_ && std::string(KUMI_BUILD_DIR).starts_with("/tmp/"); }

    std::set<std::string> files() const {
        std::set<std::string> found;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
            found.insert(entry.path());
        return found;
    }

    /// The calling process sees these folders instead of the machine's.
    bool move_in() const {
        const uid_t uid = ::geteuid();
        const gid_t gid = ::getegid();
        if (::unshare(CLONE_NEWNS) != 0) {
            if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
            std::ofstream("/proc/self/setgroups") << "deny";
            std::ofstream("/proc/self/uid_map") << uid << " " << uid << " 1";
            std::ofstream("/proc/self/gid_map") << gid << " " << gid << " 1";
        }
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
        const auto bind = [](const std::string& what, const std::string& where) {
            return ::mount(what.c_str(), where.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0;
        };
        if (is_build_hidden() && !bind(KUMI_BUILD_DIR, outside(KUMI_BUILD_DIR))) return false;
        // /tmp last, for the others lie in it.
        return std::all_of(places.begin(), places.end(),
                           [&](const std::string& place) { return bind(outside(place), place); });
    }

    Folder folder_;
    bool is_private_;
    std::set<std::string> before_;
};

const std::set<std::string> no_files;

std::vector<pid_t> guardians_of(const Running& command) {
    std::vector<pid_t> found;
    for (const std::string& process : processes_marked(command.mark())) {
        const std::string pid = process.substr(0, process.find(' '));
        if (file_text("/proc/" + pid + "/comm") == "kumi-guardian\n") found.push_back(std::atoi(pid.c_str()));
    }
    return found;
}

void expect_all_gone_when_killed(Running& command, OwnPlaces& own) {
    command.signal(SIGKILL);
    EXPECT_TRUE(comes_true([&] { return processes_marked(command.mark()).empty(); }, one_second))
        << command.left_behind();
    EXPECT_EQ(command.finish().code, 137);
    EXPECT_EQ(own.leftovers(), no_files);
}

} // namespace

TEST(Leftovers, a_file_that_a_job_leaves_is_found_wherever_it_lies) {
    OwnPlaces own;
    std::string folders = "$TMPDIR";
    std::set<std::string> expected{"/tmp/tmpdir/left"};
    if (own.is_private())
        for (const char* const folder : {"/tmp", "/dev/shm", "/run", "/var/tmp"})
            folders += std::string(" ") + folder, expected.insert(folder + std::string("/left"));
    const Outcome outcome = run(own.command(
        kumi_run({"-n", "1", "--no-join", "sh", "-c", "for folder in " + folders + "; do : > $folder/left; done"})));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(own.leftovers(), expected);
    for (const char* const folder : {"/tmp", "/dev/shm", "/run", "/var/tmp"})
        EXPECT_FALSE(std::filesystem::exists(folder + std::string("/left"))) << "the machine's own " << folder;
}

TEST(Leftovers, mpi_programs_leave_nothing_however_they_end) {
    for (const char* const mpi : {"openmpi", "mpich"}) {
        SCOPED_TRACE(mpi);
        const std::string actor = program(std::string("mpi_actor_") + mpi);
        if (sanitized) KUMI_SKIP(skips::plain_build_only);
        if (!std::filesystem::exists(actor)) KUMI_SKIP(skips::built_without(mpi));
        OwnPlaces own;
        EXPECT_EQ(run(own.command(kumi_run({"-n", "3", actor, "sum"}))).code, 0);
        EXPECT_EQ(own.leftovers(), no_files);
        EXPECT_EQ(run(own.command(kumi_run({"-n", "3", actor, "at=1", "abort=5"}))).code, 5);
        EXPECT_EQ(own.leftovers(), no_files);
        Running killed(own.command(kumi_run({"-n", "3", actor, "say=ready", "wait"})));
        ASSERT_TRUE(killed.printed(": ready\n", 3));
        expect_all_gone_when_killed(killed, own);
    }
}

TEST(Leftovers, a_job_leaves_no_file_whatever_carries_its_messages) {
    for (const char* const device : {"shmem", "udp", "composite"}) {
        OwnPlaces own;
        Command command = own.command(kumi_run({"-n", "3", example("02_ring"), "5"}));
        command.environment.push_back(std::string("KUMI_DEVICE=") + device);
        expect_ring(run(command), 3, 5);
        EXPECT_EQ(own.leftovers(), no_files) << device;
    }
}

TEST(Leftovers, killing_kumi_run_kills_the_nodes_and_all_that_they_started) {
    OwnPlaces own;
    Running command(own.command(kumi_run(
        {"-n", "3", own.write_script("sleep 1000"), "ignore=TERM", "ignore=HUP", "join", "say=ready", "wait"})));
    ASSERT_TRUE(command.printed("ready", 3));
    // kumi run, its guardian, a PMIx server, as scripts may start MPI, and for each node a shell, its helper and the
    // program.
    const std::size_t servers = std::filesystem::exists(KUMI_BUILD_DIR "/libexec/kumi/kumi-pmix") ? 1 : 0;
    EXPECT_TRUE(comes_true([&] { return processes_marked(command.mark()).size() == 2 + servers + 3 * 3; }, 5s))
        << command.left_behind();
    expect_all_gone_when_killed(command, own);
}

TEST(Leftovers, killing_kumi_run_kills_a_helper_in_a_session_of_its_own) {
    OwnPlaces own;
    Running command(
        own.command(kumi_run({"-n", "2", own.write_script("setsid sleep 1000"), "join", "say=ready", "wait"})));
    ASSERT_TRUE(command.printed("ready", 2));
    expect_all_gone_when_killed(command, own);
}

TEST(Leftovers, killing_the_guardian_and_kumi_run_at_once_kills_all_the_same) {
    OwnPlaces own;
    Running command(own.command(kumi_run({"-n", "3", own.write_script("sleep 1000"), "join", "say=ready", "wait"})));
    ASSERT_TRUE(command.printed("ready", 3));
    const auto guardians = guardians_of(command);
    ASSERT_EQ(guardians.size(), 1u);
    command.signal(SIGSTOP); // so that no other guardian takes its place
    ::kill(guardians[0], SIGKILL);
    expect_all_gone_when_killed(command, own);
}

TEST(Leftovers, a_guardian_that_was_killed_has_a_successor) {
    OwnPlaces own;
    Running command(
        own.command(kumi_run({"-n", "2", own.write_script("setsid sleep 1000"), "join", "say=ready", "wait"})));
    ASSERT_TRUE(command.printed("ready", 2));
    const auto first = guardians_of(command);
    ASSERT_EQ(first.size(), 1u);
    ::kill(first[0], SIGKILL);
    EXPECT_TRUE(comes_true([&] { return guardians_of(command).size() == 1 && guardians_of(command) != first; }, 5s));
    expect_all_gone_when_killed(command, own);
}

TEST(Leftovers, a_helper_in_the_background_ends_with_its_node) {
    OwnPlaces own;
    const Outcome outcome = run(own.command(kumi_run({"-n", "2", own.write_script("sleep 1000"), "join"})));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(own.leftovers(), no_files);
}

TEST(Leftovers, a_helper_in_a_session_of_its_own_ends_with_the_job) {
    OwnPlaces own;
    const Outcome outcome = run(own.command(kumi_run({"-n", "2", own.write_script("setsid sleep 1000"), "join"})));
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(own.leftovers(), no_files);
}

TEST(Leftovers, a_helper_of_a_node_that_died_is_gone_too) {
    OwnPlaces own;
    const Outcome outcome =
        run(own.command(kumi_run({"-n", "2", own.write_script("setsid sleep 1000"), "join", "1:abort", "wait"})));
    EXPECT_EQ(outcome.code, 134);
    EXPECT_EQ(own.leftovers(), no_files);
}

TEST(Leftovers, the_helper_of_a_node_that_has_ended_does_not_wait_for_the_others) {
    OwnPlaces own;
    Running command(own.command(kumi_run({"-n", "2", own.write_script("sleep 1000"), "handle=USR1", "join", "say=ready",
                                          "0:leave", "0:exit=0", "until_signal"})));
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
