#pragma once

// One job while it runs, without a terminal: JobRun starts the nodes, answers their questions while they join, passes
// on their output, input and signals, and decides what the end of a node means for the others. The first failure
// decides the exit code and is the only one that is told: those that follow are its consequence.
//
// A process may have many JobRuns at once. A JobRun does not block, but for start() with MPI
// (host/pmi/pmi_servers.hpp), touches no standard stream, and neither catches nor blocks signals. The process that owns
// it serves it:
// - all JobRuns of the process belong to one thread, which lives until they have ended: the kernel kills nodes when the
//   thread that started them ends;
// - before the first one, host::adopt_orphans();
// - on SIGCHLD, host::reap(), which passes each child that has ended to on_child_end() of every JobRun;
// - when descriptor() is readable, at deadline(), and after any other call, turn(), until is_over().

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/keys.hpp"
#include "kumi/launch/job_hosts.hpp"
#include "kumi/launch/job_listener.hpp"
#include "kumi/launch/job_options.hpp"
#include "kumi/launch/plan.hpp"
#include "kumi/launch/rendezvous.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kumi::launch {

/// How a job ended.
struct JobEnd {
    int exit_code = 0;  // 0; that of the first node that failed; 128 + the signal that killed it; what fail() was given
    std::string reason; // of the first failure; empty after success
};

/// Its end kills what still runs.
class JobRun final : private remote::RemoteListener {
public:
    /// Plans a job; starts nothing. Refuses a job that this host, or those of the options, cannot hold. `listener`
    /// outlives the JobRun.
    static Result<std::unique_ptr<JobRun>> make(JobOptions options, JobListener& listener);
    JobRun(const JobRun&) = delete;
    JobRun& operator=(const JobRun&) = delete;

    /// Whether all nodes run on this host.
    bool is_here() const { return plan_.is_here(); }
    /// Whether its nodes are Kumi programs, which can say what they wait for.
    bool is_of_kumi() const { return options_.must_join; }
    /// Starts the nodes on this host, or the helpers on others. `input` becomes the standard input of node 0 if all
    /// nodes are here; without it that is empty. After an error nothing runs once the JobRun is destroyed.
    Result<void> start(base::Descriptor input = {});

    int descriptor() const noexcept { return hosts_.descriptor(); }
    Instant deadline() const;
    /// Handles what has happened, a bounded part of it at a time.
    void turn();
    /// A child of this process has ended, perhaps one of this job. Call it from within host::reap().
    void on_child_end(pid_t pid, int status) { hosts_.on_child_end(pid, status); }

    /// While held, output stays in the nodes' pipes, which hold the nodes back, and a job whose output is not read to
    /// its end is not over.
    void hold_output(bool hold);
    /// Sends input to node 0 of a job on other hosts. Empty: the end of the input. At most remote::input_bytes_max may
    /// be under way; JobListener::on_input_taken() gives room.
    void send_input(Bytes bytes) { hosts_.send_input(bytes); }
    /// Sends a signal to all nodes and their process groups. The job goes on.
    void signal(int number) { hosts_.signal(number); }
    /// Asks all nodes, but for that one, to print what they wait for. The job goes on.
    void ask_for_waits(std::optional<std::uint32_t> but = {});
    /// Ends the job because its user wants so: sends `signal` to all nodes, and kills those that run 5 seconds later.
    /// The second call kills them at once. Answers whether this decided how the job ends: then the exit code is
    /// 128 + `signal`.
    bool end(int signal);
    /// Ends the job because of a failure, unless it has failed already: asks all nodes to end, and kills them soon
    /// after. Also decides the exit code of a job that is over.
    void fail(int code, const std::string& what);

    /// Nothing of the job is left, and all its output has been passed on.
    bool is_over() const noexcept { return is_over_; }
    const JobEnd& how_it_ended() const noexcept { return end_; }
    std::size_t running_count() const noexcept { return running_count_; }

    /// What nodes have reported on leaving, if the options ask for it; by node.
    const TrafficReports& traffic() const { return rendezvous_.traffic(); }
    const StatsReports& stats() const { return rendezvous_.stats(); }

private:
    struct NodeState {
        pid_t pid = -1;
        bool running = false;
        bool ended = false;
        bool out_open = false;
        bool err_open = false;
    };

    JobRun(JobOptions options, Plan plan, const base::JobKeys& keys, JobListener& listener);

    void on_started(std::uint32_t node, pid_t pid) override;
    void on_frame(std::uint32_t node, boot::Frame frame) override;
    void on_output(std::uint32_t node, host::Stream stream, std::string_view text) override;
    void on_end(std::uint32_t node, int status) override;
    void on_host_started(std::uint32_t host, std::uint32_t cores) override;
    void on_host_lost(std::uint32_t host, const std::string& why) override;
    void on_clock_difference(std::uint32_t host, std::int64_t nanoseconds) override;
    void on_input_taken(std::uint32_t bytes) override;

    void on_deadlines();
    void on_start_deadline();
    void on_join_deadline();
    void on_run_deadline();
    void on_late(std::uint32_t node, std::string_view what);
    void on_abort(std::uint32_t node, Bytes body);
    void check_missing();
    void forget_node(NodeState& node);
    Instant output_deadline() const;
    void drain();
    void conclude();
    std::string describe(std::uint32_t node) const;

    const JobOptions options_;
    const Plan plan_;
    JobListener& listener_;
    Rendezvous rendezvous_;
    std::vector<NodeState> nodes_;
    std::size_t running_count_ = 0;
    JobHosts hosts_;
    Instant start_deadline_ = never;
    Instant join_deadline_ = never;
    Instant run_deadline_ = never; // then nodes are asked what they wait for, and soon after the job ends
    bool has_asked_at_deadline_ = false;
    bool has_been_late_ = false;
    bool has_failed_ = false; // or was ended: how it ends is decided
    bool end_requested_ = false;
    JobEnd end_;
    Instant kill_deadline_ = never;    // then what still runs is killed
    Instant abandon_deadline_ = never; // then hosts that do not tell how their nodes ended are not waited for

    // All nodes have ended, and their output is read to its end.
    bool is_draining_ = false;
    bool is_cut_ = false; // the user waits for no more output
    bool is_held_ = false;
    Instant held_since_{};
    Instant output_deadline_ = never; // unless it is held
    bool is_over_ = false;
};

} // namespace kumi::launch
