#pragma once

// What this node has for others: requests, of which each node takes a bounded number at a time, and replies, which a
// handler may send without waiting. What a full channel refuses waits here: replies, of which there cannot be more than
// the requests that they answer, and requests from handlers, up to a bound. A reply may say that a request failed: so
// no message counts a request as handled that leaves before its reply. One thread at a time uses it.

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
    explicit Outbox(pm::Channel& channel);

    /// `head` starts with a Header, in which this fills in the counts. False: not now.
    bool try_request(Node to, MutableBytes head, Bytes body = {}) noexcept {
        Peer& peer = peers_[to];
        // Not before replies that wait: one may tell of a failure that this request's count would pass over.
        if (peer.requested - peer.handled >= requests_max || peer.is_waiting) [[unlikely]]
            return false;
        if (!post(to, head, body, peer.handled_here)) return false;
        ++peer.requested;
        ++unhandled_;
        return true;
    }
    /// Something that is neither counted nor answered. False: not now.
    bool try_post(Node to, MutableBytes head, Bytes body = {}) noexcept { return post(to, head, body, tellable(to)); }
    /// From a handler: sent now or later, in order with other requests. False when too much waits already.
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

    /// Bytes of requests from handlers that may wait, to all nodes together.
    static constexpr std::size_t waiting_bytes_max = std::size_t{16} << 20;

private:
    struct Waiting {
        std::vector<std::byte> copy;
        std::uint64_t handled; // to be told by it
    };
    struct Peer {
        std::uint64_t requested = 0;    // sent
        std::uint64_t handled = 0;      // of these, as it has told
        std::uint64_t handled_here = 0; // of its requests
        std::uint64_t told = 0;
        bool has_asked = false; // for credit
        bool is_asked = false;   // by it, which had requests that were not handled yet, as far as it knew
        bool is_telling = false; // a message that tells only this waits among the replies
        bool is_waiting = false; // among waiting_nodes_
        bool is_lost = false;    // nothing is sent to it any more
        std::list<Waiting> replies; // lists, which take no memory while they are empty
        std::list<Waiting> requests;
    };

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
    bool take_credit(Peer& peer, std::uint16_t more) noexcept;
    bool drain(Node to, std::list<Waiting>& waiting, bool are_requests);
    void keep(Node to, std::list<Waiting>& waiting, Bytes head, Bytes body);

    pm::Channel& channel_;
    std::vector<Peer> peers_;
    std::vector<Node> waiting_nodes_;
    std::uint64_t unhandled_ = 0; // requests under way, to all
    std::size_t requests_waiting_ = 0;
    std::size_t waiting_bytes_ = 0; // of requests
};

} // namespace kumi::engine
