#pragma once

// What this node has for others: requests, of which each node takes a bounded number at a time; replies, which a
// handler may send without waiting; and plain messages, of which each node takes a bounded number of bytes at a time.
// What finds no room waits here. A reply may say that a request failed: so no message counts a request as handled that
// leaves before its reply. One thread at a time uses it.
//
// Nothing that a handler sends is refused. Instead, this node takes less work while much waits here: is_full() says
// which requests are to be held back, and threads of the program send no requests to handlers meanwhile. Held requests
// take credits of their senders, so handlers that forward are slowed down from the beginning of their chain.
//
// Why cycles of handlers that forward do not block each other. Let M be waiting_bytes_max. (1) A request that has to
// wait here gets pressure p if at least p * M wait, with it. So while more than (p + 1) * M wait, requests of pressure
// p + 1 or more are among them: all that came since the last time that no more waited. Requests of pressure p are held
// back only then. (2) A request of pressure p may be sent while fewer than requests_max + p * requests_per_pressure are
// under way, so requests of less pressure never take all credits. What waits for one node goes in order: all of it
// counts as its largest pressure, and so do requests of one source that are held back. Now look at the largest pressure
// of all requests, on any node, that wait for ever to be sent. By (2) the receiver holds back requests of that
// pressure, or more, for ever. By (1) a request of larger pressure waits there: a contradiction.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/channel.hpp"

#include <cstddef>
#include <cstring>
#include <list>
#include <string>
#include <vector>

namespace kumi::engine {

using pm::Node;

class Outbox {
public:
    /// If more than `waiting_bytes_max` wait, for all nodes together, requests are held back.
    explicit Outbox(pm::Channel& channel, std::size_t waiting_bytes_max = waiting_bytes_usual);

    /// For services. `head` starts with a Header, in which this fills in the counts. False: not now.
    bool try_request(Node to, MutableBytes head, Bytes body = {}) noexcept {
        return try_request(to, head, body, requests_max);
    }
    /// The same for a request to a handler: also refused while much waits. A handler then calls request().
    bool try_send(Node to, MutableBytes head, Bytes body = {}) noexcept { return try_request(to, head, body, limit_); }
    /// Something that is neither counted nor answered. False: not now.
    bool try_post(Node to, MutableBytes head, Bytes body = {}) noexcept { return post(to, head, body, tellable(to)); }
    /// With the turn: sent now or later, in order with other requests. False: the node is lost.
    bool request(Node to, MutableBytes head, Bytes body = {});
    /// Sent now or later.
    void reply(Node to, MutableBytes head, Bytes body = {});

    /// To be told of every message that comes, and when a request has been handled. False: its count makes no sense.
    bool on_header(Node from, const Header& header) noexcept {
        Peer& peer = peers_[from];
        const auto more = static_cast<std::uint16_t>(header.handled - static_cast<std::uint16_t>(peer.handled));
        return more == 0 || take_credit(peer, more);
    }
    void on_handled(Node from) {
        Peer& peer = peers_[from];
        ++peer.handled_here;
        if ((peer.handled_here - peer.told >= requests_max / 2 && !peer.is_telling) || peer.is_asked) [[unlikely]]
            tell_handled(from);
    }
    /// It asks what has been handled: is told now, and again when more has been.
    void on_asked(Node from);
    void tell_handled(Node to);
    /// Fills in the counts of a message that somebody sends by himself.
    void note_told(Node to, MutableBytes head) noexcept;

    /// So much waits that requests of that pressure are to be held back.
    bool is_full(std::uint32_t pressure = 0) const noexcept {
        return waiting_bytes_ > (pressure + 1) * waiting_bytes_max_ && pressure < pressure_max;
    }

    // ---- plain messages

    /// `to` takes another plain message of the program's threads, or of handlers. The channel may have no room all the
    /// same.
    bool has_plain_room(Node to, bool is_forwarded) const noexcept {
        const Plain& plain = peers_[to].plain[is_forwarded];
        return plain.sent - plain.taken <= plain_window_ && peers_[to].plains.empty();
    }
    void on_plain_sent(Node to, bool is_forwarded, std::size_t bytes) noexcept {
        peers_[to].plain[is_forwarded].sent += bytes + plain_overhead;
    }
    /// From a handler: a plain message that is sent later. False: the node is lost.
    bool keep_plain(Node to, std::vector<std::byte> message);
    /// The program has got a plain message.
    void on_plain_taken(Node from, bool was_forwarded, std::size_t bytes) {
        Plain& plain = peers_[from].plain[was_forwarded];
        plain.here += bytes + plain_overhead;
        if (plain.here - plain.told > plain_window_ / 4) [[unlikely]]
            tell_taken(from);
    }
    /// False: this makes no sense.
    bool on_taken(Node from, const Taken& taken) noexcept;

    /// Sends what waits; true if some of it went.
    bool go_on();
    bool has_waiting() const noexcept { return !waiting_nodes_.empty(); }
    std::size_t waiting_bytes() const noexcept { return waiting_bytes_; }

    /// Numbers of requests to a node, from 1: the last one sent, and up to which all have been handled there.
    std::uint64_t requested(Node to) const noexcept { return peers_[to].requested; }
    std::uint64_t handled(Node to) const noexcept { return peers_[to].handled; }
    std::uint64_t under_way(Node to) const noexcept { return peers_[to].requested - peers_[to].handled; }
    bool all_handled(Node to) const noexcept {
        return peers_[to].requested == peers_[to].handled && peers_[to].requests.empty();
    }
    bool all_handled() const noexcept { return unhandled_ == 0 && requests_waiting_ == 0; }
    /// The number of the last request to `to`, if those that wait here are counted.
    std::uint64_t last_request(Node to) const noexcept { return peers_[to].requested + peers_[to].requests.size(); }
    /// Whether `to` has handled all requests up to that number, or is given up.
    bool has_handled(Node to, std::uint64_t number) const noexcept {
        return peers_[to].handled >= number || peers_[to].is_lost;
    }
    /// Asks `to` to tell at once what it has handled; no more than one such question is under way.
    void ask_for_credit(Node to);
    void ask_for_credits();
    /// For people: which nodes have not handled all.
    std::string describe_unhandled() const;
    /// Requests to it are not waited for any more, and nothing is sent to it.
    void give_up(Node lost) noexcept;
    /// Tells all nodes what has been handled of theirs: who leaves tells nothing later.
    void tell_all_handled();

    static constexpr std::size_t waiting_bytes_usual = std::size_t{16} << 20;
    /// Bytes of plain messages that a node may send while the receiver has not taken earlier ones.
    std::size_t plain_window() const noexcept { return plain_window_; }

private:
    struct Waiting {
        std::vector<std::byte> copy;
        std::uint64_t handled; // to be told by it
    };
    /// Bytes of plain messages: of threads of the program, or of handlers.
    struct Plain {
        std::uint64_t sent = 0, taken = 0; // to this peer; of these, as it has told
        std::uint64_t here = 0, told = 0;  // of its messages, taken here
    };
    struct Peer {
        std::uint64_t requested = 0;    // sent
        std::uint64_t handled = 0;      // of these, as it has told
        std::uint64_t handled_here = 0; // of its requests
        std::uint64_t told = 0;
        bool has_asked = false; // for credit
        bool is_asked = false;   // by it, which had requests that were not handled yet, as far as it knew
        bool is_telling = false; // a message that tells only this waits among the replies
        bool is_waiting = false; // replies or requests wait
        bool is_listed = false;  // among waiting_nodes_
        bool is_lost = false;    // nothing is sent to it any more
        std::list<Waiting> replies; // lists, which take no memory while they are empty
        std::list<Waiting> requests;
        std::uint32_t pressure = 0; // the largest of `requests`
        std::list<Waiting> plains;
        Plain plain[2];
    };
    enum class Sort { reply, request, plain };

    /// What may be told to have been handled: not what a reply that waits is about.
    std::uint64_t tellable(Node to) const noexcept {
        return peers_[to].replies.empty() ? peers_[to].handled_here : peers_[to].told;
    }
    static void write_count(MutableBytes head, std::uint64_t handled) noexcept {
        const auto count = static_cast<std::uint16_t>(handled);
        std::memcpy(head.data() + offsetof(Header, handled), &count, sizeof count);
    }
    bool post(Node to, MutableBytes head, Bytes body, std::uint64_t handled) noexcept {
        write_count(head, handled);
        if (!(body.empty() ? channel_.try_send(to, head) : channel_.try_send(to, head, body))) [[unlikely]]
            return false;
        peers_[to].told = handled;
        return true;
    }
    bool try_request(Node to, MutableBytes head, Bytes body, std::uint64_t limit) noexcept {
        Peer& peer = peers_[to];
        // Not before replies that wait: one may tell of a failure that this request's count would pass over.
        if (peer.requested - peer.handled >= limit || peer.is_waiting) [[unlikely]]
            return false;
        if (!post(to, head, body, peer.handled_here)) return false;
        ++peer.requested;
        ++unhandled_;
        return true;
    }
    void set_limit() noexcept { limit_ = is_full() ? 0 : requests_max; }
    bool take_credit(Peer& peer, std::uint16_t more) noexcept;
    bool drain(Node to, std::list<Waiting>& waiting, Sort sort);
    bool try_drain(Node to, Waiting& next, Sort sort);
    void keep(Node to, std::list<Waiting>& waiting, std::vector<std::byte> copy);
    void tell_taken(Node to);

    static constexpr std::size_t plain_overhead = 64; // what a message takes beside its bytes, about

    pm::Channel& channel_;
    std::vector<Peer> peers_;
    std::vector<Node> waiting_nodes_;
    std::uint64_t unhandled_ = 0; // requests under way, to all
    std::size_t requests_waiting_ = 0;
    std::size_t waiting_bytes_max_;
    std::size_t waiting_bytes_ = 0;
    std::uint64_t limit_ = requests_max; // of requests to handlers under way to a node; 0 while much waits
    std::size_t plain_window_;
};

} // namespace kumi::engine
