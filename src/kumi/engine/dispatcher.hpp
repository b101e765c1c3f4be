#pragma once

// The engine behind its face (engine.hpp). The dispatcher has the services and handlers of the program, to which it
// gives each message that arrives, and sends what they want to send. Its parts:
//
//   ProgressLoop     which thread makes progress, and when: it has the turn
//   EngineProgress   what that thread does
//   Arrivals         gives each message that has come to a service or a handler
//   Outbox           messages to other nodes, and credits
//   PeerWatch        which nodes are lost, and when silent nodes are sent a keep-alive
//   ActiveMessages   messages of the program
//
// and the services that every engine has: barriers, calls, operations (what this node has begun and others complete),
// and those of remote memory. Layers above add their own. Everything except the memory of this host requires the turn.

#include "kumi/base/result.hpp"
#include "kumi/engine/active_messages.hpp"
#include "kumi/engine/barrier/barrier_service.hpp"
#include "kumi/engine/call/calls.hpp"
#include "kumi/engine/memory/flags.hpp"
#include "kumi/engine/memory/memory_service.hpp"
#include "kumi/engine/memory/rendezvous.hpp"
#include "kumi/engine/memory/segments.hpp"
#include "kumi/engine/memory/memory_map.hpp"
#include "kumi/engine/operation/operation_service.hpp"
#include "kumi/engine/progress/peer_watch.hpp"
#include "kumi/engine/progress/engine_progress.hpp"
#include "kumi/engine/progress/progress_loop.hpp"
#include "kumi/engine/receiving/arrivals.hpp"
#include "kumi/engine/receiving/handler_context.hpp"
#include "kumi/engine/sending/outbox.hpp"
#include "kumi/engine/sending/outgoing.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/pm/channel.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kumi::engine {

/// What nodes find out about each other when they join.
struct Agreed {
    std::vector<std::uint32_t> handlers;  // the number on the wire of each handler of this node
    std::vector<std::uint32_t> functions; // and of each function
    std::vector<std::string> hosts;       // by node, for people; may be empty
    std::vector<Node> firsts;             // by node: the first of the nodes that share its memory; may be empty

    /// True if both nodes have a host of the same name.
    bool share_host(Node a, Node b) const noexcept {
        return std::max(a, b) < hosts.size() && hosts[a] == hosts[b];
    }
};

class Dispatcher final {
public:
    struct Options {
        pm::Patience patience;
        ProgressOptions progress;
        /// How often nodes that owe an answer are sent a keep-alive.
        Duration keepalive_every = std::chrono::seconds(1);
        std::function<Instant()> clock = now; // for keep-alives
        /// While more bytes wait to be sent, requests to handlers are held back.
        std::size_t waiting_bytes_max = Backlog::bytes_usual;
        /// Windows of all nodes together, for what this node keeps until it is handled; the same on all nodes.
        std::size_t kept_bytes_max = ByteWindows::bytes_of_all;
    };
    static Result<std::unique_ptr<Dispatcher>> open(pm::Channel& channel, Handlers&& handlers, const Options& options);
    /// Sends what waits to be sent, for some seconds at most, and ends the background thread.
    ~Dispatcher();
    /// What all nodes have agreed on, before any of them starts. Without it each node assumes that others have its own
    /// handlers in the same order.
    void set_agreement(Agreed agreed);
    const Agreed& agreed() const noexcept { return agreed_; }

    Node node() const noexcept { return channel_.self(); }
    Node nodes() const noexcept { return nodes_; }
    pm::Channel& channel() noexcept { return channel_; }
    std::size_t message_bytes_max() const noexcept { return message_bytes_max_; }
    /// "node 3 on b0"
    std::string name_of(Node node) const;
    Result<void> check_node(const char* what, Node node) const;

    // ---- its parts

    ActiveMessages& messages() noexcept { return messages_; }
    OperationService& operations() noexcept { return operations_; }
    BarrierService& barriers() noexcept { return barriers_; }
    Calls& calls() noexcept { return calls_; }
    Segments& segments() noexcept { return segments_; }
    Flags& flags() noexcept { return flags_; }
    MemoryService& memory() noexcept { return memory_; }
    Rendezvous& rendezvous() noexcept { return rendezvous_; }
    const PeerWatch& peers() const noexcept { return peers_; }
    ProgressLoop& loop() noexcept { return loop_; }
    EngineProgress& progress() noexcept { return progress_; }
    Arrivals& arrivals() noexcept { return arrivals_; }
    /// What handlers reach by their Call.
    HandlerContext& context() noexcept { return context_; }
    Outbox& outbox(const Turn&) noexcept { return outbox_; }
    /// Without the turn: a hint whether requests to `to` wait for room.
    bool seems_crowded(Node to) const noexcept { return outbox_.seems_crowded(to); }

    // ---- for services

    /// Adds a service before the loop is started, in the same order on all nodes. The service must live until the
    /// engine has ended.
    [[nodiscard]] Port add_service(Service& service);
    /// Null: there are not so many.
    Service* service_at(std::size_t index) const noexcept {
        return index < services_.size() ? services_[index].service : nullptr;
    }
    /// For as long as the turn lives no other thread runs handlers. A thread may take it more than once.
    [[nodiscard]] Turn take_turn() noexcept { return Turn(loop_); }
    /// The channel says that `node` has left or is lost. What it sent before may still have to be handled.
    bool is_lost(Node node) const noexcept { return channel_.lost(node); }
    /// Sends an empty message: a network reports a dead host only when something is sent to it. Requires the turn.
    void send_keepalive(Node node) noexcept;
    /// Sends a request that begins with a header. Waits for room; with the turn, the request itself waits in the
    /// outbox. An error: the node is lost.
    Result<void> request(Node to, MutableBytes head, Bytes body);
    /// The same for a request to a handler: threads of the program also wait while much waits to be sent.
    Result<void> send(Node to, MutableBytes head, Bytes body);
    /// A message makes no sense. The user is told once.
    void note_unsound(Node source) noexcept;

private:
    friend class ActiveMessages;
    friend class EngineProgress;
    friend class Port;

    Dispatcher(pm::Channel& channel, Handlers&& handlers, const Options& options, std::unique_ptr<MemoryMap> map);

    template <class TrySend>
    Result<void> send_or_wait(Node to, MutableBytes head, Bytes body, TrySend&& try_send);
    /// A request of that size, with its header, may be sent to `to`: the node exists, and the request is not too large.
    bool may_send(Node to, std::size_t bytes) const noexcept {
        return to < nodes_ && bytes <= message_bytes_max_ + sizeof(Header);
    }

    /// A service, as it was added. Its place is the same on all nodes.
    struct Added {
        Service* service;
        bool wants_progress = false;
    };

    pm::Channel& channel_;
    Node nodes_;
    std::size_t message_bytes_max_;
    Agreed agreed_;
    std::unique_ptr<MemoryMap> map_;
    Outbox outbox_;
    PeerWatch peers_;
    Arrivals arrivals_{*this};
    HandlerContext context_;
    bool has_told_unsound_ = false;
    std::vector<Added> services_;
    unsigned services_waiting_ = 0; // services that want progress

    ActiveMessages messages_;
    // Services, in the order of their ranges in wire.hpp.
    BarrierService barriers_{*this};
    Calls calls_{*this};
    OperationService operations_{*this};
    Segments segments_{*this, *map_};
    Flags flags_{*this, *map_};
    MemoryService memory_{*this, *map_, segments_, flags_};
    Rendezvous rendezvous_{*this, memory_};

    EngineProgress progress_{*this};
    ProgressLoop loop_; // last: its thread uses all the rest
};

inline bool ActiveMessages::try_send(Node to, Handle handler, MutableBytes message, Bytes payload) noexcept {
    if (!dispatcher_.may_send(to, message.size() + payload.size()) || !handlers_.has_made(handler)) [[unlikely]]
        return false;
    write_header(message, kind_of(handler.index), true);
    const Turn turn(dispatcher_.loop_);
    return dispatcher_.outbox_.try_send(to, message, payload);
}

inline bool Port::try_send(Node to, std::uint16_t kind, MutableBytes message, Bytes payload) noexcept {
    if (!dispatcher_->may_send(to, message.size() + payload.size())) [[unlikely]]
        return false;
    write_header(message, wire_kind(kind), true);
    const Turn turn(dispatcher_->loop_);
    return dispatcher_->outbox_.try_request(to, message, payload);
}

template <class Head>
Result<void> Port::request(Node to, std::uint16_t kind, const Head& head, Bytes body) {
    auto message = outgoing(wire_kind(kind), true, head);
    return dispatcher_->request(to, message.bytes(), body);
}

template <class Head>
bool Port::try_request(const Turn& turn, Node to, std::uint16_t kind, const Head& head, Bytes body) noexcept {
    auto message = outgoing(wire_kind(kind), true, head);
    return dispatcher_->outbox(turn).try_request(to, message.bytes(), body);
}

template <class Head>
bool Port::try_request_for(const Turn& turn, std::uint32_t thread, Node to, std::uint16_t kind, const Head& head,
                           Bytes body) noexcept {
    auto message = outgoing_for(wire_kind(kind), thread, head);
    return dispatcher_->outbox(turn).try_request(to, message.bytes(), body);
}

template <class Head>
bool Port::queue(const Turn& turn, Node to, std::uint16_t kind, const Head& head, Bytes body) {
    auto message = outgoing(wire_kind(kind), true, head);
    return dispatcher_->outbox(turn).request(to, message.bytes(), body);
}

template <class Head>
bool Port::queue_for(const Turn& turn, std::uint32_t thread, Node to, std::uint16_t kind, const Head& head,
                     Bytes body) {
    auto message = outgoing_for(wire_kind(kind), thread, head);
    return dispatcher_->outbox(turn).request(to, message.bytes(), body);
}

template <class Head>
void Port::reply(const Turn& turn, Node to, std::uint16_t kind, const Head& head, Bytes body) {
    auto message = outgoing(wire_kind(kind), false, head);
    dispatcher_->outbox(turn).reply(to, message.bytes(), body);
}

template <class Head>
bool Port::try_reply(const Turn& turn, Node to, std::uint16_t kind, const Head& head, Bytes body) noexcept {
    auto message = outgoing(wire_kind(kind), false, head);
    return dispatcher_->outbox(turn).try_reply(to, message.bytes(), body);
}

} // namespace kumi::engine
