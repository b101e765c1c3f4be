#pragma once

// A job without the engine: messages, and nothing that goes on by itself.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/pm/channel.hpp"
#include "kumi/pm/wait.hpp"

#include <functional>
#include <memory>
#include <string>

namespace kumi {
using pm::KeptMessage;
using pm::Message;
using pm::Node;

/// This process as one node of a job, from join() until it is destroyed, for programs that do all by PM's messages:
/// nothing is handled unless they poll. One thread uses it. All nodes of a job join by this, or all by Job.
class PmJob final {
public:
    /// Joins the job that this process was started for; started by hand, it is a job of one node. Once per process.
    static Result<PmJob> join();

    PmJob(PmJob&&) noexcept;
    PmJob& operator=(PmJob&&) = delete;
    /// Leaves. What was sent before still arrives.
    ~PmJob();

    Node node() const noexcept;
    Node nodes() const noexcept;
    /// The host that this node runs on.
    const std::string& host() const noexcept;

    /// Sets what is called with every message, from inside the calls below; from the next message on, also when it is
    /// called by that function itself. Before it is set, messages wait. What it throws is logged.
    void on_message(std::function<void(Message&)> handler);

    /// Sends one message made of one or more pieces, each a span of bytes. Waits for room, handling messages
    /// meanwhile; inside a handler use channel().try_send(). An error: no such node, too large, node lost.
    template <class... Pieces>
    Result<void> send(Node to, const Pieces&... pieces) {
        if (auto possible = check(to, (std::size_t{0} + ... + Bytes(pieces).size())); !possible) return possible;
        while (!channel().try_send(to, pieces...))
            if (auto room = wait_for_room(to); !room) return room;
        return {};
    }

    /// Sends what was held back so that small messages share a packet. The calls below do it too; for a node that
    /// sends and then computes.
    void flush() noexcept;

    /// Handles what has arrived; answers how many messages.
    std::size_t poll();

    /// Handles messages until `done()`, sleeping while there are none. False when the deadline came first.
    template <class Done>
    bool wait_until(Done&& done, Instant deadline = never) {
        return pm::poll_until(channel(), handler(), std::forward<Done>(done), patience(), deadline);
    }

    /// The channel itself: messages filled and read in place, back-pressure seen, sleeping by hand.
    pm::Channel& channel() noexcept;

private:
    struct State;
    explicit PmJob(std::unique_ptr<State> state) noexcept;

    Result<void> check(Node to, std::size_t bytes) const;
    Result<void> wait_for_room(Node to);
    pm::Handler handler() noexcept;
    pm::Patience patience() const noexcept;

    std::unique_ptr<State> state_;
};

} // namespace kumi
