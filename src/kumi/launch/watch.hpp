#pragma once

// The nodes of a job while it runs: one thread, one epoll loop. It answers their questions while they join, passes on
// output, input and signals, and decides what the end of a node means for the others. The first failure decides the
// exit code and is the only one that is told: what follows is its consequence.
//
// Where the nodes run makes no difference to it: on this host (host::Nodes), or on others (remote::RemoteHost), where a
// helper does the same with the same code.

#include "kumi/base/clock.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/keys.hpp"
#include "kumi/base/result.hpp"
#include "kumi/launch/host/nodes.hpp"
#include "kumi/launch/host/terminal.hpp"
#include "kumi/launch/output.hpp"
#include "kumi/launch/plan.hpp"
#include "kumi/launch/remote/agent.hpp"
#include "kumi/launch/remote/input_relay.hpp"
#include "kumi/launch/remote/remote_host.hpp"
#include "kumi/launch/rendezvous.hpp"
#include "kumi/launch/run.hpp"

#include <csignal>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kumi::launch {

class Watch final : public remote::RemoteListener {
public:
    Watch(const RunOptions& options, Plan plan, const base::JobKeys& keys);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

    /// Starts all nodes of this host, or the helpers on others. After an error nothing is left.
    Result<void> start();

    /// Watches until nothing of the job is left; answers the exit code.
    int until_end();

    void on_started(std::uint32_t node, pid_t pid) override;
    void on_frame(std::uint32_t node, boot::Frame frame) override;
    void on_output(std::uint32_t node, host::Stream stream, std::string_view text) override;
    void on_end(std::uint32_t node, int status) override;
    void on_host_started(std::uint32_t host, std::uint32_t cores) override;
    void on_host_lost(std::uint32_t host, const std::string& why) override;
    void on_clock_difference(std::uint32_t host, std::int64_t nanoseconds) override;
    void on_input_taken(std::uint32_t bytes) override;

private:
    struct NodeState {
        NodeState(Sink& out_sink, Sink& err_sink, const std::string& label)
            : out_lines(out_sink, label), err_lines(err_sink, label) {}

        pid_t pid = -1;
        bool running = false;
        bool ended = false;
        Collector out_lines;
        Collector err_lines;
    };

    Result<void> start_here();
    Result<void> start_on_hosts();
    remote::RemoteOptions order_for(std::uint32_t part, const remote::Agent& agent,
                                    const remote::JobOrder& order) const;
    void on_all_started();
    void turn();
    void on_event(const host::Event& event);
    void on_signals();
    void on_signal(int signal);
    void on_input();
    void on_typed_input();
    void on_deadlines();
    void on_start_deadline();
    void on_join_deadline();
    void check_missing();
    void warn(const std::string& what);
    void fail(int code, const std::string& what);
    void signal_nodes(int signal);
    void forget_node(NodeState& node);
    void drain_output();
    void flush_patiently(Sink& sink);
    void check_output();
    std::string describe(std::uint32_t node) const;
    Instant next_deadline() const;
    bool is_over() const;
    int finish();

    RunOptions options_;
    Plan plan_;
    Sink out_sink_;
    Sink err_sink_;
    Rendezvous rendezvous_;
    std::deque<NodeState> nodes_;
    std::size_t running_count_ = 0;
    std::optional<host::Children> children_;
    std::optional<host::Poller> poller_;
    base::Descriptor signals_;
    sigset_t old_mask_{};
    // Where the nodes are: here, or on other hosts, by part.
    std::optional<host::Nodes> here_;
    std::deque<remote::RemoteHost> remotes_;
    host::TypedInput input_;                // to node 0 here
    std::optional<remote::InputRelay> input_relay_; // to node 0 there
    Instant start_deadline_ = never;
    Instant join_deadline_ = never;
    bool failed_ = false;
    int exit_code_ = 0;
    unsigned end_requests_ = 0;     // signals from the user that ask us to end
    Instant kill_deadline_ = never; // then what still runs is killed
    Instant abandon_deadline_ = never; // then hosts that do not tell its end are not waited for
};

} // namespace kumi::launch
