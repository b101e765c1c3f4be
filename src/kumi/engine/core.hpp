#pragma once

// The engine behind its face (engine.hpp). Core gives each message that arrives to a service or to a handler of the
// program, and does what messages about remote memory ask for. Its parts: ProgressLoop (which thread makes progress,
// and when), Outbox (messages to other nodes, and credits), MemoryMap (segments and heaps), Operations (what this node
// has begun and others complete), and the services of barriers and of calls. Except for the memory of this host, all of
// it requires the turn.

#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/barrier_service.hpp"
#include "kumi/engine/calls.hpp"
#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/handlers.hpp"
#include "kumi/engine/memory_map.hpp"
#include "kumi/engine/operations.hpp"
#include "kumi/engine/outbox.hpp"
#include "kumi/engine/outgoing.hpp"
#include "kumi/engine/progress_loop.hpp"
#include "kumi/engine/progress.hpp"
#include "kumi/engine/service.hpp"
#include "kumi/pm/channel.hpp"

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kumi::engine {

/// What nodes find out about each other when they join.
struct Agreed {
    std::vector<std::uint32_t> handlers;  // their numbers on the wire
    std::vector<std::uint32_t> functions; // the same
    std::vector<std::string> hosts;       // by node, for people; may be empty
    std::vector<Node> firsts;             // by node: the first whose memory it reaches
};

class Core final : public Progress, private Work {
public:
    using Where = global_ptr<std::byte>;

    struct Options {
        pm::Patience patience;
        ProgressOptions progress;
        /// How often nodes that owe an answer are sent a keep-alive.
        Duration keepalive_every = std::chrono::seconds(1);
        std::function<Instant()> clock = now; // for that
    };
    static Result<std::unique_ptr<Core>> open(pm::Channel& channel, Handlers&& handlers, const Options& options);
    ~Core();
    const Handlers& handlers() const noexcept { return handlers_; }
    /// The first of the nodes whose memory this one reaches.
    Node first_on_host() const noexcept;
    /// What all nodes have agreed on, before any of them starts; without it, each takes what it has for granted.
    void set_agreement(Agreed agreed);
    /// Starts the background thread.
    void start() { loop_.start(); }
    /// What is called with plain messages; they wait until it is set.
    void on_message(std::function<void(pm::Message&)> handler);

    Node node() const noexcept { return channel_.self(); }
    Node nodes() const noexcept { return nodes_; }
    pm::Channel& channel() noexcept { return channel_; }
    std::size_t message_bytes_max() const noexcept { return message_bytes_max_; }

    // ---- messages

    /// `message` has room for a header, and then the arguments. False: not now, or never; send() knows.
    bool try_send(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) noexcept {
        return try_send_kind(to, kind_of(handler), message, payload);
    }
    Result<void> send(Node to, std::uint32_t handler, MutableBytes message, Bytes payload);
    void reply(Node to, std::uint32_t handler, MutableBytes message, Bytes payload);
    /// A plain message, as large as the channel takes.
    Result<void> send_message(Node to, std::span<const Bytes> pieces);
    /// `answered` will not be called any more, if it was not yet. Answers whether that is so.
    bool forget(std::uint64_t asked) override;

    // ---- for services

    /// Before start(), and in the same order on all nodes. The service must live until the engine has ended.
    [[nodiscard]] Port add_service(Service& service);
    ProgressLoop& loop() noexcept { return loop_; }
    /// What this node has begun and others complete.
    Operations& operations(const Turn&) noexcept { return operations_; }
    /// Tells `to` that an operation of its own, or a request without one, has failed here.
    void refuse(Node to, OperationId operation, const std::string& why);
    Result<void> check_node(const char* what, Node node) const;
    /// Handles what has arrived, unless this is inside a handler.
    void make_progress(const Turn& turn) noexcept;
    /// What nodes of this host share beside their segments.
    SharedPage& shared_page(Node node) noexcept { return memory_->page(node); }
    /// Something in the memory of `node` has changed, before a fence: if a thread sleeps there it is woken.
    void nudge_sleeper(Node node) noexcept;
    /// The background is to look soon.
    void call_background(const Turn& turn) noexcept { loop_.call(turn); }
    /// Sends an empty message to `node`: a network reports a dead node only when something is sent to it. Requires the
    /// turn.
    void send_keepalive(Node node) noexcept;
    /// How often the engine has sent keep-alives. Requires the turn.
    std::uint64_t looks() const noexcept { return looks_; }
    /// For as long as this lives nobody else runs handlers. A thread may have it more than once.
    [[nodiscard]] Turn take_turn() noexcept { return Turn(loop_); }
    /// Runs a handler of this node as if `source` had sent for it; what went wrong, if something did.
    std::optional<std::string> run_here(std::uint32_t number, Node source, Bytes arguments);
    /// Numbers on the wire.
    std::uint32_t number_of(std::uint32_t handler) const noexcept { return agreed_.handlers[handler]; }
    bool has_handler(std::uint32_t number) const noexcept { return number < handler_of_.size(); }
    bool is_lost(Node node) const noexcept { return channel_.lost(node); }
    /// True when `node` is lost and everything that it sent has been handled. Requires the turn.
    bool is_gone(Node node) const noexcept { return lost_[node] == Fate::lost; }
    /// Some node is gone.
    bool has_losses(const Turn&) const noexcept { return has_losses_; }
    /// Requests to it that it has not handled yet, as far as is known.
    std::uint64_t under_way(Node to) const noexcept { return outbox_.requested(to) - outbox_.handled(to); }
    /// Whether this process reaches the memory of `node` by loads and stores.
    bool reaches(Node node) const noexcept { return memory_->reaches(node); }
    /// As far as the names of their hosts tell.
    bool share_host(Node a, Node b) const noexcept {
        return std::max(a, b) < agreed_.hosts.size() && agreed_.hosts[a] == agreed_.hosts[b];
    }
    /// By node, the first of those that share its memory; empty where nothing was agreed on.
    const std::vector<Node>& firsts() const noexcept { return agreed_.firsts; }

    // ---- memory

    struct MadeSegment {
        SegmentId id;
        MutableBytes bytes;
    };
    Result<MadeSegment> make_segment(std::size_t count, std::size_t bytes_each);
    /// This node's part of it; all nodes must do so before anybody uses it.
    Result<MadeSegment> add_segment(std::uint64_t bytes);
    Result<void> free_segment(SegmentId segment);
    Result<std::uint64_t> allocate(std::size_t count, std::size_t bytes_each);
    Result<void> release(Where memory);
    std::byte* local(Where where, std::size_t bytes) noexcept;

    Result<void> put(Where to, Bytes source, const Notice& notice);
    Result<void> start_put(Where to, Bytes source, const Notice& notice);
    Result<void> get(Where from, MutableBytes target);
    Result<void> start_get(Where from, MutableBytes target, Flag* flag);
    Result<void> copy(Where from, Where to, std::size_t bytes, const Notice& notice);
    Result<void> put_strided(Where to, const std::byte* source, const Strided& shape, const Notice& notice);
    Result<void> get_strided(Where from, std::byte* target, const Strided& shape);
    Result<void> get_pieces(std::span<const GetPiece> pieces);
    Result<std::uint64_t> atomic(Where word, const Atomic& what);

    // ---- notification

    void expect(Counter& counter, std::int64_t arrivals);
    Result<void> wait_flag(const Flag& flag, Flag value, Instant deadline);
    Result<void> sync(Instant deadline);
    Result<void> start_sync(Flag& flag);
    Result<void> offer(std::uint64_t key, Node to, Bytes source, Flag* flag, Flag value);
    Result<void> accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag, Flag value);
    Result<void> broadcast(Where to, Bytes source, const Notice& notice);
    void discard_broadcasts(bool discard) noexcept { discards_.store(discard); }

    BarrierService& barriers() noexcept { return barriers_; }
    Calls& calls() noexcept { return calls_; }

    // ---- progress

    std::size_t poll();
    void flush();
    bool wait_until(base::FunctionRef<bool()> done, Instant deadline) override {
        return loop_.serve_until(done, deadline);
    }
    void wake() noexcept override;
    bool in_handler() const noexcept override { return loop_.has_turn(); }
    /// "node 3 on b0"
    std::string name_of(Node node) const;
    /// A message makes no sense: the user is told, once.
    void note_unsound(Node source) noexcept;

private:
    friend class Port;
    /// What goes out in pieces, as there is room.
    struct Transfer {
        enum class Kind { put, get, broadcast };

        Kind kind = Kind::put;
        Node node = 0; // where to; for a broadcast this one
        Place place{};
        const std::byte* source = nullptr;
        std::uint64_t bytes = 0;
        std::uint64_t next = 0; // the first byte that has not gone
        bool has_gone = false;  // all of it
        Notice notice{};
        OperationId operation = no_operation; // to be completed, when all is there
        std::uint64_t last_request = 0;
        OperationId want = no_operation; // of the node where it goes, which is to be told how much it was
        Flag* flag = nullptr; // to be set when the source may be changed
        Flag flag_value = 1;
        unsigned under_way = 0;          // pieces of a broadcast
    };
    struct Offer {
        Bytes source;
        Flag* flag;
        Flag value;
    };
    using Meeting = std::pair<std::uint64_t, Node>; // key, the other node

    Core(pm::Channel& channel, Handlers&& handlers, const Options& options, std::unique_ptr<MemoryMap> memory);

    // Work
    std::size_t work(const Turn& turn) noexcept override;
    bool prepare_sleep(const Turn& turn, bool is_background) noexcept override;
    void end_sleep(const Turn& turn, bool is_background) noexcept override;
    Duration sleep_max() const noexcept override { return keepalive_every_; }
    bool run_tasks() noexcept override { return calls_.run_task(); }
    bool has_tasks(const Turn& turn) const noexcept override { return calls_.has_tasks(turn); }

    // Arrivals; false: it made no sense.
    void on_arrival(const Turn& turn, pm::Message& message) noexcept;
    Handled handle(const Turn& turn, Node source, const Header& header, Bytes rest, pm::Message& message);
    Handled on_service_message(const Turn& turn, Node source, std::size_t kind, Bytes rest);
    bool handle_own(Node source, Kind kind, Bytes rest, pm::Message& message);
    bool go_on_services(const Turn& turn) noexcept;
    bool run_handler(Node source, const Header& header, Bytes rest);
    bool run_entry(const Handlers::Entry& entry, Call& call, Bytes rest, std::string& trouble);
    void on_plain_message(Node source, Bytes rest, pm::Message& message);
    bool on_put(Node source, Bytes rest);
    bool on_put_strided(Node source, Bytes rest);
    bool on_get(Node source, Bytes rest);
    bool on_got(Node source, Bytes rest);
    bool on_atomic(Node source, Bytes rest);
    bool on_copy(Node source, Bytes rest);
    bool on_done(Node source, Bytes rest);
    bool on_failed(Node source, Bytes rest);
    bool on_want(Node source, Bytes rest);
    bool on_broadcast(Node source, Bytes rest);

    // Going out
    Result<void> check(const char* what, Where where, std::uint64_t bytes) const;
    Result<void> request_bytes(Node to, MutableBytes head, Bytes body);
    void reply_done(Node to, OperationId operation, std::uint64_t value);
    Result<void> check_notice(const char* what, Node node, const Notice& notice) const;
    Result<void> refuse_notice(const char* what, Node node, const Notice& notice) const;
    OperationId begin_get(Where from, MutableBytes target, Operation operation);
    void start_transfer(Transfer transfer, bool is_in_background = true);
    bool go_on_transfers();
    bool go_on_transfers_to(std::list<Transfer>& transfers);
    bool send_piece(Transfer& transfer);
    bool send_put_piece(Transfer& transfer, std::uint64_t bytes);
    bool send_get_piece(Transfer& transfer, std::uint64_t bytes);
    bool send_broadcast_piece(Transfer& transfer, std::uint64_t bytes);
    bool is_over(Transfer& transfer);

    // Being done
    std::byte* find_place(Node source, const Place& place, std::uint64_t bytes) noexcept;
    std::string explain_place(const Place& place, std::uint64_t bytes) const;
    bool apply_notice(Node node, const Notice& notice) noexcept;
    void set_flag_here(Flag& flag, Flag value) noexcept;
    void nudge(Node node) noexcept;
    void complete(OperationId id);
    void fail(OperationId id, Error why);
    Result<std::uint64_t> wait_for(OperationId id, Instant deadline = never);
    void note_error(Error why);
    Error take_error();
    bool all_done() const noexcept;
    void check_syncs();
    bool notice_losses(const Turn& turn);
    void fail_operations_of(const Turn& turn, Node lost);
    void check_silent_peers(const Turn& turn);
    void give(Node to, const Want& want, const Offer& offer);
    void pass_on(Broadcast what, Bytes data, Operation::Answered when_all_have_it);
    template <class Head>
    Result<void> request(Kind kind, Node to, const Head& head, Bytes body = {}) {
        auto message = outgoing(kind, true, head);
        return request_bytes(to, message.bytes(), body);
    }

    Kind kind_of(std::uint32_t handler) const noexcept {
        return static_cast<Kind>(static_cast<std::uint32_t>(Kind::first_handler) + agreed_.handlers[handler]);
    }
    static Kind kind_of(std::size_t service, std::uint16_t kind) noexcept {
        return static_cast<Kind>(first_of_services + service * Service::kinds_max + kind);
    }
    static constexpr std::size_t first_of_services = static_cast<std::size_t>(Kind::step);
    static constexpr std::size_t services_max =
        (static_cast<std::size_t>(Kind::first_handler) - first_of_services) / Service::kinds_max;
    static void write_header(MutableBytes message, Kind kind, bool is_request) noexcept {
        const Header header = header_of(kind, is_request);
        std::memcpy(message.data(), &header, sizeof header);
    }
    bool try_send_kind(Node to, Kind kind, MutableBytes message, Bytes payload) noexcept {
        if (to >= nodes_ || message.size() + payload.size() > message_bytes_max_ + sizeof(Header)) [[unlikely]]
            return false;
        write_header(message, kind, true);
        const Turn turn(loop_);
        return outbox_.try_request(to, message, payload);
    }
    static constexpr std::size_t head_bytes_max = 256; // of anything that carries data

    pm::Channel& channel_;
    Node nodes_;
    std::size_t message_bytes_max_;
    std::size_t chunk_bytes_;
    Handlers handlers_;
    Agreed agreed_;
    std::vector<std::uint32_t> handler_of_;  // by number on the wire
    std::unique_ptr<MemoryMap> memory_;
    Outbox outbox_;
    Operations operations_;
    std::map<Node, std::list<Transfer>> transfers_; // by where to; lists, because a broadcast's pieces know theirs
    std::vector<Flag*> syncs_; // to be set when all is done
    std::map<Meeting, std::deque<Offer>> offers_;
    std::map<Meeting, std::deque<Want>> wants_;
    std::size_t wants_waiting_ = 0;
    static constexpr std::size_t wants_max = 1 << 16;
    std::function<void(pm::Message&)> on_message_;
    std::vector<pm::KeptMessage> early_messages_;
    std::optional<Error> first_error_; // since the last sync()
    bool is_about_loss_ = false;
    enum class Fate : std::uint8_t { here, going, lost };
    std::vector<Fate> lost_; // by node
    bool has_losses_ = false;
    Duration keepalive_every_;
    std::function<Instant()> clock_;
    Instant look_at_;
    std::uint64_t looks_ = 0;
    unsigned empty_polls_ = 0;
    unsigned watchers_ = 0; // threads that sleep or are about to
    bool background_watches_ = false; // and so does the background
    std::atomic<bool> discards_{false};
    bool has_told_unsound_ = false;
    struct Added {
        Service* service;
        bool wants_progress = false;
    };
    std::vector<Added> services_;   // their numbers are the same on all nodes
    unsigned services_waiting_ = 0; // that want progress
    BarrierService barriers_{*this}; // the first of them
    Calls calls_{*this};             // and the second
    ProgressLoop loop_; // last: its thread uses all the rest
};

inline bool Port::try_send(Node to, std::uint16_t kind, MutableBytes message, Bytes payload) noexcept {
    return core_->try_send_kind(to, Core::kind_of(index_, kind), message, payload);
}

template <class Head>
Result<void> Port::request(Node to, std::uint16_t kind, const Head& head, Bytes body) {
    auto message = outgoing(Core::kind_of(index_, kind), true, head);
    return core_->request_bytes(to, message.bytes(), body);
}

template <class Head>
void Port::reply(const Turn&, Node to, std::uint16_t kind, const Head& head, Bytes body) {
    auto message = outgoing(Core::kind_of(index_, kind), false, head);
    core_->outbox_.reply(to, message.bytes(), body);
}

} // namespace kumi::engine
