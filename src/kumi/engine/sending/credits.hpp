#pragma once

// Counts of requests: those of this node under way to each other node, and those of each other node that were handled
// here. A node tells the others what it has handled; that is their credit. Pure: who sends what is outbox.hpp's.
//
// Headers of requests under way are kept, because a request carries the number of the thread that sent it: if a node is
// lost, those threads are told whose requests it may not have handled. Each node has a ring of headers, in which a
// request has its place by its number; that costs each request one load and one store.
//
// A count of n says that the first n requests have been handled, and not only that n have been. Requests to handlers
// may be held back here while later requests of the same node, such as puts, are handled. Those that passed a held
// request are counted when nothing of the node is held any more. Until then they take credits, so their pressure counts
// as that of the held ones, too: outbox.hpp has the reason.

#include "kumi/base/data/bitmap.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kumi::engine {

using pm::Node;

class Credits {
public:
    // Headers are not initialised: memory of the rings of nodes that are never sent to is not touched.
    explicit Credits(Node nodes)
        : peers_(nodes), kept_(nodes), asked_of_(nodes),
          headers_(std::make_unique_for_overwrite<Header[]>(std::size_t{nodes} * ring_size)) {}

    // ---- requests of this node

    /// Numbers of requests to a node, from 1: the last one sent, and up to which all have been handled there.
    std::uint64_t requested(Node to) const noexcept { return peers_[to].requested; }
    std::uint64_t handled(Node to) const noexcept { return peers_[to].handled; }
    std::uint64_t under_way(Node to) const noexcept { return peers_[to].requested - peers_[to].handled; }
    bool all_handled(Node to) const noexcept { return under_way(to) == 0 && peers_[to].waiting == 0; }
    bool all_handled() const noexcept { return unhandled_ == 0 && waiting_ == 0; }
    /// Calls `visit(node)` for each node that has not handled all. Looks at the nodes that were asked for something
    /// since the last time, and not at all nodes of the job.
    template <class Visit>
    void for_each_owing(Visit&& visit) const {
        for (std::size_t node = asked_of_.next_set(0); node < asked_of_.size(); node = asked_of_.next_set(node + 1)) {
            if (all_handled(static_cast<Node>(node))) asked_of_.clear(node);
            else visit(static_cast<Node>(node));
        }
    }
    /// The number of the last request to `to`, if those that wait here are counted.
    std::uint64_t last_request(Node to) const noexcept { return peers_[to].requested + peers_[to].waiting; }
    /// Whether `to` has handled all requests up to that number, or is given up.
    bool has_handled(Node to, std::uint64_t number) const noexcept {
        return peers_[to].handled >= number || peers_[to].is_lost;
    }

    /// A request may be sent to `to`, of which fewer than `limit` are under way.
    bool may_request(Node to, std::uint64_t limit) const noexcept {
        return under_way(to) < limit && !peers_[to].is_blocked;
    }
    /// Whether something waits for `to` that no request may pass.
    void set_blocked(Node to, bool is_blocked) noexcept { peers_[to].is_blocked = is_blocked; }
    void on_requested(Node to, const Header& header) noexcept {
        place_of(to, ++peers_[to].requested) = header;
        asked_of_.set(to);
        ++unhandled_;
    }
    /// A request to `to` waits here, or does not any more.
    void on_waiting(Node to) noexcept {
        ++peers_[to].waiting;
        asked_of_.set(to);
        ++waiting_;
    }
    void on_waited(Node to) noexcept {
        --peers_[to].waiting;
        --waiting_;
    }

    /// `from` tells how many requests it has handled in all. False: that makes no sense.
    bool on_told(Node from, std::uint16_t handled) noexcept {
        Peer& peer = peers_[from];
        const auto more = static_cast<std::uint16_t>(handled - static_cast<std::uint16_t>(peer.handled));
        return more == 0 || take(peer, more);
    }
    /// `to` may be asked to tell: something is under way, and no earlier question is open.
    bool may_ask(Node to) const noexcept { return !peers_[to].has_asked && under_way(to) != 0; }
    void on_asking(Node to) noexcept { peers_[to].has_asked = true; }

    // ---- requests of other nodes

    std::uint64_t handled_here(Node from) const noexcept { return peers_[from].handled_here; }
    /// Of these, what `from` knows.
    std::uint64_t told(Node from) const noexcept { return peers_[from].told; }
    void note_told(Node from, std::uint64_t handled) noexcept { peers_[from].told = handled; }
    /// A request of `from`, of that pressure, has been handled when it came. True: that is to be told now.
    bool on_handled(Node from, std::uint32_t pressure = 0) noexcept {
        Peer& peer = peers_[from];
        if (peer.attention != 0) [[unlikely]]
            return on_handled_with_attention(from, pressure);
        ++peer.handled_here;
        return is_much_untold(peer);
    }
    /// A request of `from` is kept and will be handled later. It is held if it is for a handler: no request that came
    /// after it is counted before it. Others, such as calls in line, only take a credit.
    void on_kept(Node from, std::uint32_t pressure, bool is_held) noexcept;
    /// A request that was kept has been handled. Those that are held are handled in the order in which they came. True:
    /// that is to be told now.
    bool on_kept_handled(Node from, bool was_held) noexcept;
    /// The largest pressure of requests of `from` that are kept, or that passed one that is held.
    std::uint32_t pressure_of_kept(Node from) const noexcept { return kept_[from].pressure; }
    /// `from` asks what has been handled. True: it is to be told now. Otherwise there is nothing new: it asks about
    /// what will be handled later, and does not ask again.
    bool on_asked(Node from) noexcept {
        Peer& peer = peers_[from];
        const bool is_news = peer.handled_here != peer.told;
        set_attention(peer, asked_bit, !is_news);
        return is_news;
    }
    /// A message that tells only this is under way to `from`, or waits (`is_waiting`) until it can leave.
    void on_telling(Node from, bool is_waiting) noexcept {
        set_attention(peers_[from], asked_bit, false);
        peers_[from].is_telling = is_waiting;
    }
    /// No such message waits any more.
    void on_told_all(Node from) noexcept { peers_[from].is_telling = false; }

    // ---- losses

    /// Requests to it are not waited for any more. Returns the headers of those that it has not told to have handled.
    std::vector<Header> give_up(Node lost);
    bool is_lost(Node node) const noexcept { return peers_[node].is_lost; }

private:
    struct Peer {
        std::uint64_t requested = 0;    // sent
        std::uint64_t handled = 0;      // of these, as it has told
        std::uint64_t handled_here = 0; // of its requests
        std::uint64_t told = 0;
        std::uint32_t waiting = 0; // requests that have not left
        bool is_blocked = false;
        bool has_asked = false;  // for credit
        std::uint8_t attention = 0; // bits below: something is to be done when a request of it is handled
        bool is_telling = false; // a message that tells only this waits among the replies
        bool is_lost = false;
    };
    // The node has asked, when there were requests that were not handled yet, as far as it knew.
    static constexpr std::uint8_t asked_bit = 1;
    // Requests of the node are held.
    static constexpr std::uint8_t held_bit = 2;
    static void set_attention(Peer& peer, std::uint8_t bit, bool is_on) noexcept {
        peer.attention = static_cast<std::uint8_t>(is_on ? peer.attention | bit : peer.attention & ~bit);
    }
    /// Requests of one node that are not handled when they come.
    struct Kept {
        std::uint32_t count = 0;
        std::uint32_t held = 0;     // of these, for handlers
        std::uint32_t passed = 0;   // handled, though one that came before is held
        std::uint32_t pressure = 0; // the largest of all these
    };

    static bool is_much_untold(const Peer& peer) noexcept {
        return peer.handled_here - peer.told >= requests_max / 2 && !peer.is_telling;
    }
    bool on_handled_with_attention(Node from, std::uint32_t pressure) noexcept;
    bool take(Peer& peer, std::uint16_t more) noexcept {
        if (more > peer.requested - peer.handled) [[unlikely]]
            return peer.is_lost; // what it said before comes late
        peer.handled += more;
        unhandled_ -= more;
        peer.has_asked = false;
        return true;
    }
    Header& place_of(Node to, std::uint64_t number) noexcept {
        return headers_[std::size_t{to} * ring_size + number % ring_size];
    }

    /// More than may be under way to one node.
    static constexpr std::size_t ring_size = 256;
    static_assert(ring_size >= requests_max + pressure_max * requests_per_pressure);

    std::vector<Peer> peers_;
    std::vector<Kept> kept_; // by node
    // Nodes with requests under way. A node that has handled all stays in it until the next for_each_owing().
    mutable base::Bitmap asked_of_;
    std::unique_ptr<Header[]> headers_; // of requests under way: a ring for each node
    std::uint64_t unhandled_ = 0; // requests under way, to all
    std::uint64_t waiting_ = 0;   // requests that have not left
};

} // namespace kumi::engine
