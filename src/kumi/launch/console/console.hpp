#pragma once

// The terminal side of `kumi run`: standard input, output and error of this process, its signals, and messages to the
// user. A job knows nothing of these; see JobRun.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/base/system/descriptor.hpp"
#include "kumi/launch/console/input_relay.hpp"
#include "kumi/launch/console/output.hpp"
#include "kumi/launch/console/typed_input.hpp"
#include "kumi/launch/host/poller.hpp"
#include "kumi/launch/job_listener.hpp"

#include <csignal>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace kumi::launch {

class JobRun;

/// Prints what the nodes of one job print, in whole lines, brings them the user's input and the signals that this
/// process gets, and tells the user why the job failed.
class Console final : public JobListener {
public:
    /// `label`: each line of output starts with its node's number.
    explicit Console(bool label);
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;
    /// Gives the signals back.
    ~Console();

    /// Takes the signals of this process over, and prepares it to have children.
    Result<void> open();
    /// Prepares to read standard input for a job on this host, or on others. Answers the standard input of node 0, if
    /// that is on this host.
    Result<base::Descriptor> open_input(bool is_here);

    /// Serves a job that has been started until it is over. `job` must live until finish() has returned.
    void attend(JobRun& job);
    /// Prints `report` after all that the nodes printed, and waits until the readers of both streams have taken
    /// everything. If standard output cannot be written, the job fails.
    void finish(const std::string& report);

    void on_node_started(std::uint32_t node, pid_t pid) override;
    void on_node_ended(std::uint32_t node, int status) override;
    void on_output(std::uint32_t node, host::Stream stream, std::string_view text) override;
    void on_input_taken(std::uint32_t bytes) override;
    void on_warning(const std::string& what) override;
    void on_failure(const std::string& what, std::size_t running) override;

private:
    struct NodeLines {
        Collector out;
        Collector err;
    };

    void turn();
    Instant next_deadline() const;
    void on_event(host::Source source);
    void on_signals();
    void on_signal(int signal);
    void on_end_request(int signal);
    void on_input();
    void on_typed_input();
    bool is_full() const noexcept { return out_.full() || err_.full(); }
    void check_output();
    void flush_patiently(Sink& sink);

    Sink out_;
    Sink err_;
    const bool label_;
    std::deque<NodeLines> nodes_; // by node, up to the highest that has started
    std::optional<host::Poller> poller_;
    base::Descriptor signals_;
    sigset_t old_mask_{};
    unsigned end_requests_ = 0;             // signals that asked this process to end
    TypedInput input_;                      // to node 0 on this host
    std::optional<InputRelay> input_relay_; // to node 0 on another
    JobRun* job_ = nullptr;                 // since attend()
};

} // namespace kumi::launch
