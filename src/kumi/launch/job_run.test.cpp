#include "kumi/launch/job_run.hpp"

#include "kumi/base/system/descriptor.hpp"
#include "kumi/launch/host/processes/children.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace kumi::launch {
namespace {

using namespace std::chrono_literals;

/// Keeps what a job tells.
class Told final : public JobListener {
public:
    void on_node_started(std::uint32_t, pid_t) override { ++started; }
    void on_node_ended(std::uint32_t, int) override { ++ended; }
    void on_output(std::uint32_t, host::Stream stream, std::string_view text) override {
        (stream == host::Stream::out ? out : err) += text;
        streams_ended += text.empty() ? 1 : 0;
    }
    void on_input_taken(std::uint32_t) override {}
    void on_warning(const std::string& what) override { warnings += what; }
    void on_failure(const std::string& what, std::size_t running) override {
        failures += fmt::format("{}; {} running\n", what, running);
    }

    int started = 0;
    int ended = 0;
    int streams_ended = 0;
    std::string out;
    std::string err;
    std::string warnings;
    std::string failures;
};

/// A job whose nodes are shells that run `script`. They know the test's folder as $FOLDER.
struct ShellJob {
    ShellJob(const std::string& script, const std::filesystem::path& folder, std::uint32_t nodes = 2,
             bool must_join = false) {
        JobOptions options;
        options.nodes = nodes;
        options.program = "/bin/sh";
        options.arguments = {"-c", script};
        options.environment_added = {"FOLDER=" + folder.string()};
        options.bind = false;
        options.must_join = must_join;
        run = *JobRun::make(std::move(options), told);
    }

    Told told;
    std::unique_ptr<JobRun> run;
};

/// Serves several jobs of this process, as a process that owns them does.
class JobRuns : public testing::Test {
protected:
    JobRuns() {
        host::adopt_orphans();
        std::filesystem::create_directories(folder_);
    }
    ~JobRuns() override { std::filesystem::remove_all(folder_); }

    ShellJob& start(const std::string& script, std::uint32_t nodes = 2, bool must_join = false) {
        ShellJob& job = *jobs_.emplace_back(std::make_unique<ShellJob>(script, folder_, nodes, must_join));
        const auto started = job.run->start();
        EXPECT_TRUE(started) << started.error().text();
        return job;
    }

    /// Serves all jobs until `done`, for at most 20 seconds.
    template <class Done>
    bool comes(Done&& done) {
        for (const Instant deadline = now() + 20s; !done() && now() < deadline;) {
            std::vector<pollfd> ready;
            Instant next = now() + 5ms; // ends of children are looked for, as no signal tells of them here
            for (const auto& job : jobs_) {
                if (job->run->is_over()) continue;
                ready.push_back({job->run->descriptor(), POLLIN, 0});
                next = std::min(next, job->run->deadline());
            }
            ::poll(ready.data(), ready.size(), milliseconds_until(next));
            host::reap([&](pid_t pid, int status) {
                for (const auto& job : jobs_) job->run->on_child_end(pid, status);
            });
            for (const auto& job : jobs_) job->run->turn();
        }
        return done();
    }
    bool comes_over(const ShellJob& job) {
        return comes([&] { return job.run->is_over(); });
    }

    void make_file(const std::string& name) const {
        base::Descriptor file(::creat((folder_ / name).c_str(), 0600));
        ASSERT_TRUE(file);
    }
    /// A shell command that waits for a file in the test's folder.
    static std::string until(const std::string& name) {
        return "until [ -e \"$FOLDER/" + name + "\" ]; do sleep 0.01; done; ";
    }

    const std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("kumi-test-jobs-" + std::to_string(::getpid()));
    std::vector<std::unique_ptr<ShellJob>> jobs_;
};

/// The process that a job has printed the number of, in a line of its own.
pid_t process_in(const std::string& text) { return std::atoi(text.c_str()); }

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

/// In the place of one of this process's standard streams, while it lives: a file.
class Captured {
public:
    explicit Captured(int stream)
        : stream_(stream), before_(::dup(stream)), file_(::memfd_create("captured", MFD_CLOEXEC)) {
        ::dup2(file_.get(), stream_);
    }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    ~Captured() { ::dup2(before_.get(), stream_); }

    off_t bytes() const { return ::lseek(file_.get(), 0, SEEK_END); }

private:
    int stream_;
    base::Descriptor before_;
    base::Descriptor file_;
};

TEST_F(JobRuns, two_jobs_run_at_once_in_one_process) {
    // Neither ends before the other has started.
    const ShellJob& one = start(": > \"$FOLDER/one\"; " + until("two") + "echo one");
    const ShellJob& two = start(": > \"$FOLDER/two\"; " + until("one") + "echo two >&2", 3);
    EXPECT_EQ(one.run->running_count() + two.run->running_count(), 5u);
    ASSERT_TRUE(comes([&] { return one.run->is_over() && two.run->is_over(); }));
    EXPECT_EQ(one.told.out, "one\none\n");
    EXPECT_EQ(one.told.err, "");
    EXPECT_EQ(two.told.out, "");
    EXPECT_EQ(two.told.err, "two\ntwo\ntwo\n");
    for (const ShellJob* job : {&one, &two}) {
        EXPECT_EQ(job->run->how_it_ended().exit_code, 0);
        EXPECT_EQ(job->run->how_it_ended().reason, "");
        EXPECT_EQ(job->run->running_count(), 0u);
        EXPECT_EQ(job->told.failures + job->told.warnings, "");
        EXPECT_EQ(job->told.started, job->told.ended);
        EXPECT_EQ(job->told.streams_ended, 2 * job->told.started);
    }
}

TEST_F(JobRuns, one_that_fails_or_is_ended_leaves_the_other_alone) {
    const ShellJob& failing = start("echo failing; exit 3", 1);
    const ShellJob& ended = start("sleep 1000", 3);
    const ShellJob& other = start(until("go") + "echo done", 1);
    ASSERT_TRUE(comes_over(failing));
    EXPECT_EQ(failing.run->how_it_ended().exit_code, 3);
    EXPECT_NE(failing.run->how_it_ended().reason.find("exited with code 3"), std::string::npos);
    EXPECT_EQ(failing.told.failures, failing.run->how_it_ended().reason + "; 0 running\n");
    EXPECT_EQ(ended.run->running_count(), 3u);

    EXPECT_TRUE(ended.run->end(SIGTERM));
    ASSERT_TRUE(comes_over(ended));
    EXPECT_EQ(ended.run->how_it_ended().exit_code, 128 + SIGTERM);
    EXPECT_EQ(ended.told.failures, "") << "who ended it knows that";

    EXPECT_FALSE(other.run->is_over());
    make_file("go");
    ASSERT_TRUE(comes_over(other));
    EXPECT_EQ(other.run->how_it_ended().exit_code, 0);
    EXPECT_EQ(other.told.out, "done\n");
}

TEST_F(JobRuns, a_signal_reaches_the_nodes_of_one_job_only) {
    const std::string script = "trap 'exit 0' USR1; echo ready; while :; do sleep 0.01; done";
    const ShellJob& one = start(script);
    const ShellJob& other = start(script);
    ASSERT_TRUE(comes([&] { return one.told.out == "ready\nready\n" && other.told.out == one.told.out; }));
    one.run->signal(SIGUSR1);
    ASSERT_TRUE(comes_over(one));
    EXPECT_EQ(one.run->how_it_ended().exit_code, 0);
    EXPECT_EQ(other.run->running_count(), 2u);
}

TEST_F(JobRuns, the_end_of_one_kills_what_its_nodes_left_behind_and_not_what_others_did) {
    // A process in a session of its own, whose parent ends: it becomes a child of this process.
    const std::string script = "(setsid sleep 1000 >/dev/null 2>&1 & echo $!); ";
    const ShellJob& one = start(script + until("one"), 1);
    const ShellJob& other = start(script + until("other"), 1);
    ASSERT_TRUE(comes([&] { return !one.told.out.empty() && !other.told.out.empty(); }));
    const pid_t left_by_one = process_in(one.told.out), left_by_other = process_in(other.told.out);
    ASSERT_TRUE(is_alive(left_by_one) && is_alive(left_by_other));
    // Until setsid has run, they are in their nodes' groups.
    const auto has_own_session = [](pid_t pid) { return ::getsid(pid) == pid; };
    ASSERT_TRUE(comes([&] { return has_own_session(left_by_one) && has_own_session(left_by_other); }));
    make_file("one");
    ASSERT_TRUE(comes_over(one));
    EXPECT_FALSE(is_alive(left_by_one));
    EXPECT_TRUE(is_alive(left_by_other));
    make_file("other");
    ASSERT_TRUE(comes_over(other));
    EXPECT_FALSE(is_alive(left_by_other));
}

TEST_F(JobRuns, nothing_is_written_to_the_standard_streams_of_the_process) {
    const Captured out(STDOUT_FILENO), err(STDERR_FILENO);
    const ShellJob& talking = start("echo text; echo wrong >&2");
    const ShellJob& failing = start("sleep 0.05; kill -9 $$");
    const ShellJob& ended = start("trap '' TERM; sleep 1000");
    const ShellJob& not_joining = start("echo joins nothing", 1, true);
    ASSERT_TRUE(comes_over(talking));
    ended.run->end(SIGINT);
    ASSERT_TRUE(comes([&] { return failing.run->is_over() && ended.run->is_over() && not_joining.run->is_over(); }));
    EXPECT_EQ(talking.told.out, "text\ntext\n");
    EXPECT_EQ(talking.told.err, "wrong\nwrong\n");
    EXPECT_EQ(failing.run->how_it_ended().exit_code, 128 + SIGKILL);
    EXPECT_NE(not_joining.told.failures.find("/bin/sh ended without joining the job"), std::string::npos);
    EXPECT_EQ(not_joining.run->how_it_ended().exit_code, 1);
    EXPECT_EQ(out.bytes(), 0);
    EXPECT_EQ(err.bytes(), 0);
}

TEST_F(JobRuns, a_job_whose_output_is_held_is_not_over_before_it_was_passed_on) {
    const ShellJob& held = start("echo text", 1);
    held.run->hold_output(true);
    ASSERT_TRUE(comes([&] { return held.told.ended == 1; }));
    const Instant later = now() + 400ms; // longer than output in pipes is waited for
    EXPECT_TRUE(comes([&] { return now() >= later; }));
    EXPECT_FALSE(held.run->is_over());
    EXPECT_EQ(held.told.out, "");
    held.run->hold_output(false);
    ASSERT_TRUE(comes_over(held));
    EXPECT_EQ(held.told.out, "text\n");
    EXPECT_EQ(held.run->how_it_ended().exit_code, 0);
}

TEST_F(JobRuns, a_failure_that_the_owner_reports_decides_how_the_job_ends) {
    const ShellJob& job = start("sleep 1000");
    job.run->fail(7, "no more room");
    job.run->fail(8, "too late");
    EXPECT_FALSE(job.run->end(SIGINT));
    ASSERT_TRUE(comes_over(job));
    EXPECT_EQ(job.run->how_it_ended().exit_code, 7);
    EXPECT_EQ(job.told.failures, "no more room; 2 running\n");
}

TEST_F(JobRuns, one_that_is_destroyed_kills_its_nodes_and_no_others) {
    const ShellJob& gone = start("echo $$; exec sleep 1000", 1);
    const ShellJob& other = start("echo $$; exec sleep 1000", 1);
    ASSERT_TRUE(comes([&] { return !gone.told.out.empty() && !other.told.out.empty(); }));
    const pid_t of_gone = process_in(gone.told.out);
    jobs_.erase(jobs_.begin());
    EXPECT_FALSE(is_alive(of_gone));
    EXPECT_EQ(jobs_[0]->run->running_count(), 1u);
    EXPECT_TRUE(is_alive(process_in(jobs_[0]->told.out)));
}

TEST_F(JobRuns, what_cannot_be_started_is_refused) {
    Told told;
    JobOptions options;
    options.nodes = 2;
    options.program = "/no/such/program";
    auto job = JobRun::make(options, told);
    ASSERT_TRUE(job);
    const auto started = (*job)->start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().text(), "/no/such/program: no such program");
    EXPECT_EQ(told.started, 0);
}

} // namespace
} // namespace kumi::launch
