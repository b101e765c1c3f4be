#pragma once

// What a program meets first: the job that it is part of.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/job/pm_job.hpp"
#include "kumi/pm/message.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>

namespace kumi {

/// This process as one node of a job, from join() until it is destroyed. For any thread; what the engine does for it, and
/// who does it, is in engine/engine.hpp.
class Job final : public engine::Engine {
public:
    /// Joins the job that this process was started for; started by hand, it is a job of one node. Once per process. An
    /// error also where nodes do not have the same handlers.
    static Result<Job> join(Handlers&& handlers = {});

    Job(Job&&) noexcept;
    Job& operator=(Job&&) = delete;
    /// Leaves. What was sent before still arrives.
    ~Job();

    /// The host that this node runs on.
    const std::string& host() const noexcept;

    /// Sets what is called with every message, as a handler is. Before it is set, messages wait.
    void on_message(std::function<void(Message&)> handler);

    using engine::Engine::send;
    /// Sends one message made of one or more pieces, each a span of bytes. Waits for room, handling messages meanwhile. An
    /// error: no such node, too large, node lost; inside a handler: no room.
    template <class... More>
    Result<void> send(Node to, Bytes first, const More&... more) {
        const std::array<Bytes, 1 + sizeof...(More)> pieces{first, Bytes(more)...};
        return send_pieces(to, pieces);
    }

private:
    Job(std::unique_ptr<PmJob> membership, std::unique_ptr<engine::Core> core) noexcept;
    Result<void> send_pieces(Node to, std::span<const Bytes> pieces);

    std::unique_ptr<PmJob> membership_; // with the channel that the engine uses
};

} // namespace kumi
