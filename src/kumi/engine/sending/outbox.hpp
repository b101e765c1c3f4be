#pragma once

// What this node has for others: requests, of which each node takes a bounded number at a time, and a bounded number of
// bytes if they are large; replies, which a handler may send without waiting; and plain messages, of which each node
// takes a bounded number of bytes at a time.
// What finds no room waits here. A reply may say that a request failed: so no message counts a request as handled that
// leaves before its reply. One thread at a time uses it.
//
// Nothing that a handler sends is refused. Instead, this node takes less work while much waits here:
// Backlog::is_full() says which requests are to be held back, and threads of the program send no requests to handlers
// meanwhile. Held requests take credits of their senders, so handlers that forward are slowed down from the beginning
// of their chain.
//
// Why cycles of handlers that forward do not block each other. Let M be waiting_bytes_max. (1) A request that has to
// wait here gets pressure p if at least p * M wait, with it. So while more than (p + 1) * M wait, requests of pressure
// p + 1 or more are among them: all that came since the last time that no more waited. Requests of pressure p are held
// back only then. (2) A request of pressure p may be sent while fewer than requests_max + p * requests_per_pressure are
// under way, so requests of less pressure never take all credits. (3) Nor do they take all of the window of large
// requests. Let W be the window, S the step by which each pressure widens it, and m the largest request. A large
// request of pressure p may be sent while no more than W + p * S bytes are under way, so those of less pressure take at
// most W + (p - 1) * S + m. The receiver has told of all that it has handled but W / 4. Since S is m + W / 4, there is
// room when all others have been handled. What waits for one node goes in order: all of it counts as its largest
// pressure, and so do requests of one source that are held back, together with those that passed them: these take
// credits as long. Now look at the largest pressure of all requests, on any node, that wait for ever to be sent. By (2)
// and (3) the receiver holds back requests of that pressure, or more, for ever: all other requests that it keeps, such
// as calls in line, are handled some time. By (1) a request of larger pressure waits there: a contradiction.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/sending/backlog.hpp"
#include "kumi/engine/sending/byte_windows.hpp"
#include "kumi/engine/sending/credits.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/channel.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <list>
#include <vector>

namespace kumi::engine {

using pm::Node;

/// Writes into the header of a message what it tells to have been handled.
inline void write_count(MutableBytes head, std::uint64_t handled) noexcept {
    const auto count = static_cast<std::uint16_t>(handled);
    std::memcpy(head.data() + offsetof(Header, handled), &count, sizeof count);
}

class Outbox {
public:
    /// If more than `waiting_bytes_max` wait, for all nodes together, requests are held back. `kept_bytes_max` are the
    /// windows of all nodes together.
    explicit Outbox(pm::Channel& channel, std::size_t waiting_bytes_max = Backlog::bytes_usual,
                    std::size_t kept_bytes_max = ByteWindows::bytes_of_all);

    /// Requests under way, and which of them have been handled.
    const Credits& credits() const noexcept { return credits_; }
    /// What waits here.
    const Backlog& backlog() const noexcept { return backlog_; }
    /// How much of plain messages and of large requests is under way.
    ByteWindows& windows() noexcept { return windows_; }

    /// For services. `head` starts with a Header, in which this fills in the counts. False: not now.
    bool try_request(Node to, MutableBytes head, Bytes body = {}) noexcept {
        return try_request(to, head, body, requests_max);
    }
    /// The same for a request to a handler: also refused while much waits. A handler then calls request().
    bool try_send(Node to, MutableBytes head, Bytes body = {}) noexcept {
        return try_request(to, head, body, backlog_.requests_limit());
    }
    /// Something that is neither counted nor answered. False: not now.
    bool try_post(Node to, MutableBytes head, Bytes body = {}) noexcept { return post(to, head, body, tellable(to)); }
    /// With the turn: sent now or later, in order with other requests. False: the node is lost.
    bool request(Node to, MutableBytes head, Bytes body = {});
    /// Sent now or later.
    void reply(Node to, MutableBytes head, Bytes body = {}) {
        if (!try_reply(to, head, body)) [[unlikely]]
            keep_reply(to, head, body);
    }
    /// False: not now. To a lost node nothing is sent.
    bool try_reply(Node to, MutableBytes head, Bytes body = {}) noexcept {
        if (credits_.is_lost(to)) [[unlikely]]
            return true;
        return peers_[to].replies.empty() && post(to, head, body, credits_.handled_here(to));
    }

    /// To be told of every message that comes. False: its count makes no sense.
    bool on_header(Node from, const Header& header) noexcept { return credits_.on_told(from, header.handled); }
    /// A request has been handled when it came: `bytes` with its header.
    void on_handled(Node from, std::size_t bytes, std::uint32_t pressure = 0) {
        if (credits_.on_handled(from, pressure)) [[unlikely]]
            tell_handled(from);
        if (windows_.is_large(bytes)) [[unlikely]]
            on_taken(from, Flow::large, bytes);
    }
    /// A request is kept, and has been handled later. `is_held`: it is for a handler (credits.hpp).
    void on_kept(Node from, std::uint32_t pressure, bool is_held) noexcept {
        credits_.on_kept(from, pressure, is_held);
    }
    void on_kept_handled(Node from, std::size_t bytes, bool was_held);
    /// `from` asks what has been handled: is told now, or when more has been.
    void on_asked(Node from);
    /// Fills in the counts of a message that somebody sends by himself.
    void note_told(Node to, MutableBytes head) noexcept;

    // ---- plain messages

    /// `to` takes another plain message of the program's threads, or of handlers. The channel may have no room all the
    /// same.
    bool has_plain_room(Node to, bool is_forwarded) const noexcept {
        return windows_.has_room(to, is_forwarded ? Flow::forwarded : Flow::plain) && peers_[to].plains.empty();
    }
    /// From a handler: a plain message that is sent later. False: the node is lost.
    bool keep_plain(Node to, std::vector<std::byte> message);
    /// The program has got a plain message.
    void on_plain_taken(Node from, bool was_forwarded, std::size_t bytes) {
        on_taken(from, was_forwarded ? Flow::forwarded : Flow::plain, bytes);
    }

    /// Sends what waits; true if some of it went.
    bool go_on();
    bool has_waiting() const noexcept { return !waiting_nodes_.empty(); }
    /// For any thread, without the turn: a hint whether requests to `to` wait here.
    bool seems_crowded(Node to) const noexcept { return is_crowded_[to].load(std::memory_order_relaxed); }

    /// Asks `to` to tell at once what it has handled; no more than one such question is under way.
    void ask_for_credit(Node to);
    /// Requests to it are not waited for any more, and nothing is sent to it. Returns the headers of requests that it
    /// has not told to have handled, those that have not left among them.
    std::vector<Header> give_up(Node lost);
    /// Tells all nodes what has been handled of theirs: who leaves tells nothing later.
    void tell_all_handled();

private:
    struct Waiting {
        std::vector<std::byte> copy;
        std::uint64_t handled; // to be told by it
    };
    /// What waits for a node: lists, which take no memory while they are empty.
    struct Peer {
        std::list<Waiting> replies;
        std::list<Waiting> requests;
        std::uint32_t pressure = 0; // the largest of `requests`
        bool is_listed = false;     // among waiting_nodes_
        std::list<Waiting> plains;
    };
    enum class Sort { reply, request, plain };

    /// What may be told to have been handled: not what a reply that waits is about.
    std::uint64_t tellable(Node to) const noexcept {
        return peers_[to].replies.empty() ? credits_.handled_here(to) : credits_.told(to);
    }
    bool post(Node to, MutableBytes head, Bytes body, std::uint64_t handled) noexcept {
        write_count(head, handled);
        if (!(body.empty() ? channel_.try_send(to, head) : channel_.try_send(to, head, body))) [[unlikely]]
            return false;
        credits_.note_told(to, handled);
        return true;
    }
    bool try_request(Node to, MutableBytes head, Bytes body, std::uint64_t limit) noexcept {
        if (windows_.is_large(head.size() + body.size())) [[unlikely]]
            return try_large(to, head, body, limit);
        return try_small(to, head, body, limit);
    }
    bool try_large(Node to, MutableBytes head, Bytes body, std::uint64_t limit) noexcept;
    bool try_small(Node to, MutableBytes head, Bytes body, std::uint64_t limit) noexcept {
        // Not before replies that wait: one may tell of a failure that this request's count would pass over.
        if (!credits_.may_request(to, limit)) [[unlikely]]
            return false;
        if (!post(to, head, body, credits_.handled_here(to))) return false;
        credits_.on_requested(to, header_in(head));
        return true;
    }
    bool drain(Node to, std::list<Waiting>& waiting, Sort sort);
    bool try_drain(Node to, Waiting& next, Sort sort);
    void keep(Node to, std::list<Waiting>& waiting, std::vector<std::byte> copy);
    void keep_reply(Node to, Bytes head, Bytes body);
    void tell_handled(Node to);
    void on_taken(Node from, Flow flow, std::size_t bytes) {
        if (windows_.on_taken(from, flow, bytes)) [[unlikely]]
            tell_taken(from);
    }
    void tell_taken(Node to);

    pm::Channel& channel_;
    Credits credits_;
    Backlog backlog_;
    ByteWindows windows_;
    std::vector<Peer> peers_;
    std::vector<std::atomic<bool>> is_crowded_; // by node: it has requests in its Peer
    std::vector<Node> waiting_nodes_;
};

} // namespace kumi::engine
