#pragma once

// The engine: active messages, remote memory, notifications and barriers on top of PM, which go on in the background
// (after NICAM). Users meet it as their Job, which is one.
//
// Threads. All calls are for any thread. What arrives is handled by threads that wait in one of the calls below; while
// none does, by a thread in the background, which sleeps until something comes. Handlers run one at a time. A handler
// must not wait: inside a handler, calls that would wait are refused with ErrorCode::misuse; all others are allowed.
//
// Mutexes. A mutex that handlers, continuations or conditions of wait_until() take may be held in calls that start
// something: send, put, invoke, multicast, gather. While the handler waits for the mutex, such a call does not wait for
// room: up to 112 MiB are sent later. Then it waits for 5 s, and fails with ErrorCode::misuse. The mutex must not be
// held in calls that run handlers: the handler would wait for its own thread. A call that waits 5 s for a handler of
// another thread warns.
//
// Which calls run handlers in the calling thread, with whatever it has begun to change:
//   sync, barrier, wait, test, wait_until, poll, Future::get; of Memory get, read, atomic operations, wait, segment
//   those that start something, while they wait for room, but only without a background thread (KUMI_PROGRESS=off).
//   With one they only take in what arrives, and the background thread handles it.
//
// Errors. What the caller can know is returned. What fails elsewhere (a handler that throws, a node that dies) is
// returned by the next sync() of the thread that caused it, which names node and cause, and by the future or get() that
// it belongs to. It ends a Memory::wait() of that thread, too, which returns it. What handlers send counts as of the
// thread that runs them; for the background thread, the first sync() of any thread tells.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/barrier/barrier_token.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/engine/future/when.hpp"
#include "kumi/engine/handlers.hpp"
#include "kumi/engine/memory.hpp"

#include <memory>
#include <span>
#include <vector>

namespace kumi::engine {

using pm::Node;
class Dispatcher;

class Engine {
public:
    explicit Engine(std::unique_ptr<Dispatcher> dispatcher);
    /// One more face of an engine that another Engine owns and ends.
    explicit Engine(Dispatcher& dispatcher) noexcept;
    Engine(Engine&&) noexcept;
    /// Waits until what waits to be sent has gone, for some seconds at most.
    ~Engine();

    Node node() const noexcept;
    Node nodes() const noexcept;

    // ---- active messages

    /// Calls `handler` on `to`, which may be this node; in order for each pair of nodes. Waits while too many requests
    /// to `to` are under way, and while handlers of this node have more than 16 MiB waiting to be sent. In a handler it
    /// never waits and nothing is refused: what finds no room is sent later.
    template <class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Result<void> send(Node to, const Handler<Parameters...>& handler, const Arguments&... arguments) {
        Packed<Parameters...> packed(arguments...);
        if (try_send_packed(to, handler.handle(), packed.message(), packed.payload())) [[likely]]
            return {};
        return send_packed(to, handler.handle(), packed.message(), packed.payload());
    }
    /// The most that arguments and payload take: 256 KiB, or less where the channel has less.
    std::size_t message_bytes_max() const noexcept;

    // ---- what this node has begun

    /// Segments, the heap, puts, gets, atomic operations and flags: engine/memory.hpp.
    Memory memory() noexcept { return Memory(*dispatcher_); }
    /// Waits until everything that this thread has begun before is done where it was to be done: puts, gets, copies,
    /// calls, and requests, those of other threads too. Does not wait for what begins later, so it ends while handlers
    /// and other threads go on. An error: the first thing of this thread that failed since its last sync(), or
    /// ErrorCode::timed_out; then another call goes on waiting.
    Result<void> sync(Instant deadline = never);
    /// Does not wait: `flag`, any word of this node, becomes 1 then.
    Result<void> start_sync(Flag& flag);

    // ---- barriers

    /// This node has come; does not wait. Any number may be under way; they complete in order.
    BarrierToken arrive();
    bool test(const BarrierToken& token);
    /// Waits until all have come. May be called again after an error: ErrorCode::timed_out, or ErrorCode::node_lost if
    /// a node has left that had not come.
    Result<void> wait(const BarrierToken& token, Instant deadline = never);
    /// Comes and waits. After an error this node has come all the same: the next call does not come again but goes on
    /// waiting for the same barrier, whichever thread calls. So a call after ErrorCode::timed_out is a retry, and the
    /// nodes stay in step. An arrive() in between ends that: what is called after it is the next barrier. In a handler,
    /// where it is refused (ErrorCode::misuse), this node has not come.
    Result<void> barrier(Instant deadline = never);
    /// The same among some nodes, of which this is one: all give the same set, in any order. A set of all nodes has the
    /// same barriers as arrive() without a list.
    Result<BarrierToken> arrive(std::span<const Node> members);

    // ---- C++

    /// Calls a function on another node; what it answers, or throws, comes to the future.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Answer> invoke(Node to, const Function<Answer(Parameters...)>& function, const Arguments&... arguments);
    /// On all nodes, this one included; answers by node.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    std::vector<Future<Answer>> invoke_all(const Function<Answer(Parameters...)>& function,
                                           const Arguments&... arguments);

    // ---- progress

    /// Handles what has arrived; answers how many messages. In a handler it does nothing.
    std::size_t poll();
    /// Sends what was held back so that small messages share a packet. Whatever waits does it too.
    void flush();
    /// Makes progress until `done()`, sleeping while there is nothing to do. False when the deadline came first. `done`
    /// may look at what handlers change, and at flags. In a handler it does not wait: it answers what `done` does.
    bool wait_until(base::FunctionRef<bool()> done, Instant deadline = never);

    Dispatcher& dispatcher() noexcept { return *dispatcher_; }

private:
    bool try_send_packed(Node to, Handle handler, MutableBytes message, Bytes payload) noexcept;
    Result<void> send_packed(Node to, Handle handler, MutableBytes message, Bytes payload);

    struct Ending {
        bool is_owner;
        void operator()(Dispatcher* dispatcher) const noexcept;
    };
    std::unique_ptr<Dispatcher, Ending> dispatcher_;
};

} // namespace kumi::engine
