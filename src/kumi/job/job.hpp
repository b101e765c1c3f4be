#pragma once

// What a program meets first: the job that it is part of.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/engine.hpp"
#include "kumi/group/group.hpp"
#include "kumi/group/groups.hpp"
#include "kumi/job/pm_job.hpp"
#include "kumi/pm/message.hpp"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kumi {
namespace engine {
struct ProgressOptions;
} // namespace engine

using group::Set;

/// This process as one node of a job, from join() until it is destroyed. For any thread; what the engine does for it,
/// and who does it, is in engine/engine.hpp.
class Job final : public engine::Engine {
public:
    /// Joins the job that this process was started for; started by hand, it is a job of one node. Once per process. An
    /// error also where nodes do not have the same handlers.
    static Result<Job> join(Handlers&& handlers = {});
    struct Adoption {
        // if not, no thread uses the channel but those that call, whatever KUMI_PROGRESS says
        bool may_use_background = true;
        std::optional<group::Topology> topology; // none: nodes find out by what carries messages between them
        group::Settings groups;                  // KUMI_GROUPS goes before them
    };
    /// The same, where somebody has found the other nodes and opened a channel to them, as kumi/mpi.hpp does; not once
    /// per process.
    static Result<Job> adopt(std::unique_ptr<boot::Session> session, std::unique_ptr<pm::Channel> channel,
                             Handlers&& handlers, Adoption adoption);

    Job(Job&&) noexcept;
    Job& operator=(Job&&) = delete;
    /// Leaves. What was sent before still arrives.
    ~Job();

    /// The host that this node runs on.
    const std::string& host() const noexcept;

    /// Sets what is called with every message, as a handler is. Before it is set, messages wait.
    void on_message(std::function<void(Message&)> handler);

    using engine::Engine::send;
    /// Sends one message made of one or more pieces, each a span of bytes. Waits for room, handling messages meanwhile.
    /// An error: no such node, too large, node lost; inside a handler: no room.
    template <class... More>
    Result<void> send(Node to, Bytes first, const More&... more) {
        const std::array<Bytes, 1 + sizeof...(More)> pieces{first, Bytes(more)...};
        return send_pieces(to, pieces);
    }

    // ---- groups: group/groups.hpp

    /// Calls a handler on every member of a set of nodes, chosen now: one message leaves, members pass it on. The
    /// future has those that did not get it.
    template <class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Set> multicast(const Set& to, const Handler<Parameters...>& handler, const Arguments&... arguments) {
        return groups_->multicast(to, handler, arguments...);
    }
    /// The same for members that take it by next_multicast().
    Future<Set> multicast(const Set& to, std::uint64_t tag, Bytes content) {
        return groups_->multicast(to, tag, content);
    }
    Result<group::Arrival> next_multicast(Instant deadline = never) { return groups_->next(deadline); }
    /// Runs a function on every member; answers come back by node.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<group::Gathered<Answer>> gather(const Set& to, const Function<Answer(Parameters...)>& function,
                                           const Arguments&... arguments) {
        return groups_->gather(to, function, arguments...);
    }
    /// The same; members put answers together by `operation` on their way back.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<group::Reduced<Answer>> reduce(const Set& to, const Function<Answer(Answer, Answer)>& operation,
                                          const Function<Answer(Parameters...)>& function,
                                          const Arguments&... arguments) {
        return groups_->reduce(to, operation, function, arguments...);
    }
    /// The members of a set, of which this node is one, to do things together that all of them call: group/group.hpp.
    /// Asks nobody.
    Result<group::Group> group(const Set& set) { return groups_->group(set); }
    /// The members of a multicast that came.
    Result<group::Group> group_of(const group::Arrival& arrival) { return groups_->group_of(arrival); }
    group::Groups& groups() noexcept { return *groups_; }

private:
    Job(std::unique_ptr<PmJob> membership, std::unique_ptr<group::Groups> groups,
        std::unique_ptr<engine::Dispatcher> core) noexcept;
    static Result<Job> start(PmJob&& membership, Handlers&& handlers, const engine::ProgressOptions& progress,
                             Adoption adoption);
    Result<void> send_pieces(Node to, std::span<const Bytes> pieces);

    std::unique_ptr<PmJob> membership_; // with the channel that the engine uses
    std::unique_ptr<group::Groups> groups_;
};

} // namespace kumi
