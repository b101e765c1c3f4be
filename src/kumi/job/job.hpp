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
#include <span>
#include <string>
#include <vector>

namespace kumi {
namespace boot {
class Session;
} // namespace boot
namespace engine {
struct ProgressOptions;
} // namespace engine
namespace job {
class Membership;
} // namespace job

using group::Group;
using group::no_rank;
using group::Set;

/// This process as one node of a job, from join() until it is destroyed. It is made of an engine (messages, calls,
/// barriers, progress: engine/engine.hpp), the memory of all nodes (memory()) and groups of nodes (groups()). All
/// functions are for any thread.
class Job final {
public:
    /// Joins the job that this process was started for; started by hand, it is a job of one node. Once per process. An
    /// error also if the nodes do not have the same handlers.
    ///
    /// Handlers, functions and on_message do not run before the program has its Job: they run from the first call of
    /// the Job on that waits or polls (sync, barrier, wait_until, poll, a get), and in the background from 100 ms after
    /// this has returned. Until then messages wait in the network. So a program that keeps a pointer to its Job for its
    /// handlers sets it right after this returns; call.job() needs no such care.
    static Result<Job> join(Handlers&& handlers = {});
    struct Adoption {
        // if not, no thread uses the channel but those that call, whatever KUMI_PROGRESS says
        bool may_use_background = true;
        std::optional<group::Topology> topology; // none: nodes find out by what carries messages between them
        group::Settings groups;                  // KUMI_GROUPS goes before them
        // the process is this node: it does not exit with 0 after an error that the program did not ask about, and
        // signals that end or ask it are explained
        bool owns_process = false;
    };
    /// The same, where somebody has found the other nodes and opened a channel to them, as kumi/mpi.hpp does; not once
    /// per process.
    static Result<Job> adopt(std::unique_ptr<boot::Session> session, std::unique_ptr<pm::Channel> channel,
                             Handlers&& handlers, Adoption adoption);

    Job(Job&&) noexcept;
    Job& operator=(Job&&) = delete;
    /// Leaves the job. What was sent before still arrives. Errors that the program did not ask about, by get() of a
    /// future or by sync(), are said on standard error, and the process does not exit with 0 then (future.hpp). A tenth
    /// of a second is waited for those that have not come.
    ~Job();

    Node node() const noexcept { return engine_.node(); }
    Node nodes() const noexcept { return engine_.nodes(); }
    /// The host that this node runs on.
    const std::string& host() const noexcept;
    /// What this node has sent to whom, and by which network.
    const pm::Channel& channel() const noexcept;

    // ---- what a job is made of

    engine::Engine& engine() noexcept { return engine_; }
    /// Segments, the heap, puts, gets, atomic operations, flags: engine/memory.hpp.
    engine::Memory memory() noexcept { return engine_.memory(); }
    /// Multicasts and collectives among sets of nodes: group/groups.hpp.
    group::Groups& groups() noexcept { return *groups_; }

    // ---- messages

    /// Calls `handler` on `to`, which may be this node; in order for each pair of nodes. Waits while too many requests
    /// to `to` are under way; in a handler never, and nothing is refused there: what finds no room is sent later.
    template <class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Result<void> send(Node to, const Handler<Parameters...>& handler, const Arguments&... arguments) {
        return engine_.send(to, handler, arguments...);
    }
    /// The largest message to a handler: 256 KiB, or less if the channel takes less.
    std::size_t message_bytes_max() const noexcept { return engine_.message_bytes_max(); }
    /// Sets what is called with every plain message, as a handler is; from the next message on, also when it is called
    /// by that function itself. Messages wait until it is set, and again when it is set to none: 64 KiB to 8 MiB of
    /// each sender, and then the sender waits.
    /// What it throws is returned by the next sync() of this node.
    void on_message(std::function<void(Message&)> handler);
    /// Sends one plain message made of one or more pieces, each a span of bytes. Waits for room, and until the receiver
    /// takes messages; in a handler never: what finds no room is sent later. Errors: ErrorCode::not_found, too_large,
    /// node_lost; misuse, for a message to this node itself that would wait until this node has set on_message().
    template <class... More>
    Result<void> send(Node to, Bytes first, const More&... more) {
        const std::array<Bytes, 1 + sizeof...(More)> pieces{first, Bytes(more)...};
        return send_pieces(to, pieces);
    }
    /// Calls a function on another node. The future has its answer, or what it has thrown. <kumi/functions.hpp>
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Answer> invoke(Node to, const Function<Answer(Parameters...)>& function, const Arguments&... arguments) {
        return engine_.invoke(to, function, arguments...);
    }
    /// Calls a function on all nodes, this one included. Answers are by node. <kumi/functions.hpp>
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    std::vector<Future<Answer>> invoke_all(const Function<Answer(Parameters...)>& function,
                                           const Arguments&... arguments) {
        return engine_.invoke_all(function, arguments...);
    }

    // ---- barriers

    /// Arrives at the next barrier of all nodes, and does not wait. Any number may be under way; they complete in
    /// order.
    BarrierToken arrive() { return engine_.arrive(); }
    /// Arrives at the next barrier of some nodes, of which this is one. All members give the same set, in any order.
    Result<BarrierToken> arrive(std::span<const Node> members) { return engine_.arrive(members); }
    bool test(const BarrierToken& token) { return engine_.test(token); }
    Result<void> wait(const BarrierToken& token, Instant deadline = never) { return engine_.wait(token, deadline); }
    /// Arrives and waits for all nodes. After an error, such as ErrorCode::timed_out, the next call goes on waiting for
    /// the same barrier: engine/engine.hpp. world().barrier() is the same barrier, in the order of the group's calls.
    Result<void> barrier(Instant deadline = never) { return engine_.barrier(deadline); }

    // ---- progress

    /// Waits until everything that this thread has begun before is done where it was to be done: puts, gets, copies,
    /// calls, requests. An error: the first thing of this thread that failed since its last sync().
    Result<void> sync(Instant deadline = never) { return engine_.sync(deadline); }
    /// Does not wait: `flag`, any word of this node, becomes 1 then.
    Result<void> start_sync(Flag& flag) { return engine_.start_sync(flag); }
    /// Handles what has arrived. Returns how many messages.
    std::size_t poll() { return engine_.poll(); }
    /// Sends what was held back so that small messages share a packet. Functions that wait do so too.
    void flush() { engine_.flush(); }
    /// Makes progress until `done()`, sleeping while there is nothing to do. False when the deadline came first. `done`
    /// may look at what handlers change, and at flags. In a handler it does not wait: it answers what `done` does.
    bool wait_until(base::FunctionRef<bool()> done, Instant deadline = never) {
        return engine_.wait_until(done, deadline);
    }

    // ---- groups: group/groups.hpp

    /// Calls a handler on every member of a set of nodes, chosen now: members pass the message on. A master outside the
    /// set sends one message, if the content fits one. The future has those that did not get it.
    template <class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Set> multicast(const Set& to, const Handler<Parameters...>& handler, const Arguments&... arguments) {
        return groups_->multicast(to, handler, arguments...);
    }
    /// The same for members that take it by next_multicast().
    Future<Set> multicast(const Set& to, std::uint64_t tag, Bytes content) {
        return groups_->multicast(to, tag, content);
    }
    /// Stores values at the same place of a segment on every member.
    template <class T>
    Future<Set> multicast(const Set& to, global_ptr<T> place, std::span<const std::type_identity_t<T>> values,
                          const Notice& notice = {}) {
        return groups_->multicast(to, place, values, notice);
    }
    /// The same for values in the memory of any node.
    template <class T>
    Future<Set> multicast(const Set& to, global_ptr<T> place, global_ptr<T> from, std::size_t count,
                          const Notice& notice = {}) {
        return groups_->multicast(to, place, from, count, notice);
    }
    /// The same to a place of its own on each node.
    template <group::PlaceList Places>
    Future<Set> multicast(const Places& places, std::span<const group::ElementOf<Places>> values,
                          const Notice& notice = {}) {
        return groups_->multicast(places, values, notice);
    }
    template <group::PlaceList Places>
    Future<Set> multicast(const Places& places, global_ptr<group::ElementOf<Places>> from, std::size_t count,
                          const Notice& notice = {}) {
        return groups_->multicast(places, from, count, notice);
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
    /// All nodes of the job, to do things together.
    group::Group world() { return *groups_->group(Set::range(0, nodes())); }
    /// The nodes whose host has the name of this one.
    group::Group host_group();
    /// The members of a multicast that came.
    Result<group::Group> group_of(const group::Arrival& arrival) { return groups_->group_of(arrival); }

private:
    /// A Job that owns nothing lends the parts of the Job that the program has: call.job().
    struct Ending {
        bool is_owner;
        void operator()(job::Membership* membership) const noexcept;
        void operator()(group::Groups* groups) const noexcept;
    };
    Job(std::unique_ptr<job::Membership> membership, std::unique_ptr<group::Groups> groups,
        std::unique_ptr<engine::Dispatcher> dispatcher);
    struct Lend {};
    Job(Lend, Job& owner) noexcept;
    static Result<Job> start(job::Membership&& joined, Handlers&& handlers, engine::ProgressOptions progress,
                             Adoption adoption);
    Result<void> send_pieces(Node to, std::span<const Bytes> pieces);

    std::unique_ptr<Job> lent_;                           // for handlers: stays where it is when this is moved
    std::unique_ptr<job::Membership, Ending> membership_; // with the channel that the engine uses
    std::unique_ptr<group::Groups, Ending> groups_;       // services of the engine, which ends before them
    engine::Engine engine_;
};

} // namespace kumi
