#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/launch/host/nodes.hpp"
#include "kumi/launch/job_options.hpp"
#include "kumi/launch/plan.hpp"
#include "kumi/launch/remote/agent.hpp"
#include "kumi/launch/remote/remote_host.hpp"

#include <deque>
#include <optional>

namespace kumi::launch {

/// The hosts of one job: this one (host::Nodes), or others, on each of which a helper does the same with the same code
/// (remote::RemoteHost). Its user need not know which. Owns the processes that were started here.
class JobHosts final {
public:
    /// All arguments outlive it.
    JobHosts(const JobOptions& options, const Plan& plan, remote::RemoteListener& listener);
    JobHosts(const JobHosts&) = delete;
    JobHosts& operator=(const JobHosts&) = delete;
    /// Kills what runs.
    ~JobHosts();

    /// Starts the nodes of this host, whose node 0 reads `input`, or the helpers on other hosts.
    Result<void> start(base::Descriptor input);
    /// Whether all nodes of one part of the plan have started, or of all parts.
    bool has_started(std::size_t part) const { return here_ || remotes_[part].has_started(); }
    bool have_started() const;

    /// Is readable when turn() has something to do; so has it at deadline().
    int descriptor() const noexcept { return poller_->descriptor(); }
    Instant deadline() const;
    /// Handles what has happened, a bounded part of it at a time.
    void turn();
    /// A child of this process has ended, perhaps one of this job. Requires that it is not taken away yet.
    void on_child_end(pid_t pid, int status);

    /// Sends a frame to one node, or to all.
    void send(std::uint32_t node, const host::SharedFrame& frame);
    /// To node 0 of a job on other hosts. Empty: the end of the input.
    void send_input(Bytes bytes);
    void signal(int number);
    void hold_output(bool hold);
    /// Does not wait for hosts any longer that do not tell how their nodes ended.
    void abandon();

    /// All nodes have ended.
    bool have_ended() const;
    /// Kills processes that the nodes have left behind; see host::Children.
    void kill_leftovers() { children_->kill_leftovers(); }
    /// More output of nodes that have ended may come. Helpers on other hosts have sent all before their nodes count as
    /// ended.
    bool is_output_open() const { return here_ && here_->is_output_open(); }
    /// Reads the output that is in the nodes' pipes, without waiting for more.
    void read_rest();

private:
    Result<void> start_here(base::Descriptor input);
    Result<void> start_elsewhere();
    remote::RemoteOptions order_for(std::uint32_t part, const remote::Agent& agent,
                                    const remote::JobOrder& order) const;
    void on_event(const host::Event& event);

    const JobOptions& options_;
    const Plan& plan_;
    const std::string job_name_; // that MPI processes see
    remote::RemoteListener& listener_;
    std::optional<host::Children> children_;
    std::optional<host::Poller> poller_;
    // One of these: nodes on this host, or hosts elsewhere, by part.
    std::optional<host::Nodes> here_;
    std::deque<remote::RemoteHost> remotes_;
};

} // namespace kumi::launch
