#pragma once

// The nodes of a job while it runs: one thread, one epoll loop. It answers their questions while they join, passes on
// output, input and signals, and decides what the end of a node means for the others. The first failure decides the
// exit code and is the only one that is told: what follows is its consequence.

#include "kumi/base/clock.hpp"
#include "kumi/base/descriptor.hpp"
#include "kumi/base/keys.hpp"
#include "kumi/base/result.hpp"
#include "kumi/launch/host/guardian.hpp"
#include "kumi/launch/output.hpp"
#include "kumi/launch/rendezvous.hpp"
#include "kumi/launch/run.hpp"
#include "kumi/launch/host/terminal.hpp"

#include <csignal>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace kumi::launch {

class Watch final {
public:
    Watch(const RunOptions& options, std::string program_path, const base::JobKeys& keys);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

    /// Starts all nodes. After an error none is left.
    Result<void> start();

    /// Watches until nothing of the job is left; answers the exit code.
    int until_end();

private:
    struct NodeProcess {
        NodeProcess(Sink& out_sink, Sink& err_sink, const std::string& label)
            : out_lines(out_sink, label), err_lines(err_sink, label) {}

        pid_t pid = -1;
        bool ended = false;
        base::Descriptor boot;
        boot::FrameReader frames;
        std::deque<Reply> replies; // not sent yet
        base::Descriptor out;
        base::Descriptor err;
        Collector out_lines;
        Collector err_lines;
    };
    /// What an epoll event is about.
    enum class Source : std::uint32_t { signals, input, input_room, boot, out, err };

    Result<void> start_node(std::uint32_t node, const std::vector<cpu_set_t>& binding);
    void watch_descriptor(int descriptor, Source source, std::uint32_t node, std::uint32_t events);
    void turn();
    void on_event(Source source, std::uint32_t node);
    void on_signals();
    void on_signal(int signal);
    void on_boot(std::uint32_t node);
    void send_replies(std::uint32_t node);
    void on_output(base::Descriptor& from, Collector& lines);
    void on_input();
    void on_deadlines();
    void reap();
    void on_node_end(std::uint32_t node, int status);
    void check_missing();
    void fail(int code, const std::string& what);
    void signal_nodes(int signal);
    void kill_leftovers();
    void drain_output();
    void flush_patiently(Sink& sink);
    void check_output();
    std::string describe(std::uint32_t node) const;
    Instant next_deadline() const;
    bool all_ended() const { return ended_count_ == nodes_.size(); }
    int finish();

    RunOptions options_;
    std::string program_path_;
    std::string host_;
    Sink out_sink_;
    Sink err_sink_;
    Rendezvous rendezvous_;
    std::optional<host::Guardian> guardian_;
    base::Descriptor epoll_;
    base::Descriptor signals_;
    sigset_t old_mask_{};
    host::TypedInput input_;
    std::deque<NodeProcess> nodes_;
    std::size_t ended_count_ = 0;
    Instant join_deadline_ = never;
    bool failed_ = false;
    int exit_code_ = 0;
    unsigned end_requests_ = 0; // signals from the user that ask us to end
    Instant kill_deadline_ = never; // then what still runs is killed
};

} // namespace kumi::launch
