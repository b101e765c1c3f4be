#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/launch/host/processes/children.hpp"
#include "kumi/launch/host/host.hpp"
#include "kumi/launch/remote/link.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kumi::launch::remote {

/// Is told what happens to hosts, and what their nodes do.
class RemoteListener : public host::Listener {
public:
    /// All nodes of a host have started; they may use so many cores together.
    virtual void on_host_started(std::uint32_t host, std::uint32_t cores) = 0;
    /// The connection to a host has ended. `why` starts with the host's name. Its nodes end by themselves.
    virtual void on_host_lost(std::uint32_t host, const std::string& why) = 0;
    /// A host's clock is ahead of this host's, or behind if negative, by at least so much.
    virtual void on_clock_difference(std::uint32_t host, std::int64_t nanoseconds) = 0;
    /// Node 0 has taken so many bytes of input.
    virtual void on_input_taken(std::uint32_t bytes) = 0;

protected:
    ~RemoteListener() = default;
};

struct RemoteOptions {
    std::uint32_t index = 0; // of the host, in the job
    std::string name;
    host::ProcessOptions helper; // the command that starts the helper; descriptors are added
    std::string agent;           // that command's name, for messages
    std::string kumi_path;       // of the helper's program on the host
    std::string version;
    JobOrder order;
};

/// A host whose part of the job a helper runs there. Sends orders to the helper, and tells the listener what the helper
/// reports.
class RemoteHost final : public host::Host {
public:
    /// Requires that all arguments but the options outlive it.
    RemoteHost(RemoteOptions options, host::Poller& poller, host::Children& children, RemoteListener& listener);
    RemoteHost(const RemoteHost&) = delete;
    RemoteHost& operator=(const RemoteHost&) = delete;

    Result<void> start();

    void send(std::uint32_t node, const host::SharedFrame& frame) override;
    /// A helper that has not answered yet is not waited for: a signal that ends its nodes ends the agent.
    void signal(int number) override;
    void hold_output(bool hold) override;
    void on_event(host::Source source, std::uint32_t index) override;
    void on_child_end(pid_t pid, int status) override;
    bool is_over() const override { return agent_ended_; }

    /// Sends input to node 0, which must be on this host. Empty: the end of the input.
    void send_input(Bytes input);
    /// Kills the agent: the host is not waited for any longer.
    void abandon();
    /// When on_deadline() has something to do, though no event has come.
    Instant deadline() const noexcept { return agent_ended_ ? never : linger_deadline_; }
    void on_deadline(Instant time);

    bool has_started() const noexcept { return has_started_; }

private:
    void on_link();
    void on_errors();
    void on_hello(const Hello& hello);
    void on_frame(LinkFrame& frame);
    void on_started(Bytes pids);
    void lose(const std::string& why);
    std::string last_words() const;
    bool is_mine(std::uint32_t node) const noexcept { return node - options_.order.first < options_.order.count; }

    RemoteOptions options_;
    host::Poller& poller_;
    host::Children& children_;
    RemoteListener& listener_;
    std::optional<Link> link_; // while something may come
    base::Descriptor errors_;
    std::string said_; // the end of what the agent wrote to its standard error
    pid_t agent_ = -1;
    Instant linger_deadline_ = never;    // for the agent to end, when all has been said
    std::int64_t started_ns_ = 0;        // by this host's wall clock
    std::optional<std::uint32_t> cores_; // once it has said hello
    bool has_started_ = false;
    bool is_done_ = false;
    bool is_lost_ = false;
    bool agent_ended_ = false;
    bool is_held_ = false;
};

} // namespace kumi::launch::remote
