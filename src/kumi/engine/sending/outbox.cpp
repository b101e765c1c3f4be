#include "kumi/engine/sending/outbox.hpp"

#include "kumi/engine/sending/outgoing.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kumi::engine {

namespace {

void write_pressure(MutableBytes head, std::uint32_t pressure) {
    std::uint32_t is_request = 0;
    std::memcpy(&is_request, head.data() + offsetof(Header, is_request), sizeof is_request);
    is_request |= pressure << pressure_shift;
    std::memcpy(head.data() + offsetof(Header, is_request), &is_request, sizeof is_request);
}

std::vector<std::byte> copy_of(Bytes head, Bytes body) {
    std::vector<std::byte> copy(head.size() + body.size());
    Pieces(head, body).copy_to(copy.data());
    return copy;
}

} // namespace

Outbox::Outbox(pm::Channel& channel, std::size_t waiting_bytes_max, std::size_t kept_bytes_max)
    : channel_(channel), credits_(channel.nodes()), backlog_(waiting_bytes_max),
      windows_(channel.nodes(), kept_bytes_max), peers_(channel.nodes()), is_crowded_(channel.nodes()) {
    waiting_nodes_.reserve(channel.nodes());
}

void Outbox::note_told(Node to, MutableBytes head) noexcept {
    const std::uint64_t handled = tellable(to);
    write_count(head, handled);
    credits_.note_told(to, handled);
}

bool Outbox::try_large(Node to, MutableBytes head, Bytes body, std::uint64_t limit) noexcept {
    if (!windows_.has_room(to, Flow::large) || !try_small(to, head, body, limit)) return false;
    windows_.on_sent(to, Flow::large, head.size() + body.size());
    return true;
}

bool Outbox::request(Node to, MutableBytes head, Bytes body) {
    if (try_request(to, head, body)) return true;
    if (credits_.is_lost(to)) return false;
    Peer& peer = peers_[to];
    keep(to, peer.requests, copy_of(head, body));
    is_crowded_[to].store(true, std::memory_order_relaxed); // a hint for threads without the turn
    credits_.on_waiting(to);
    peer.pressure = std::max(peer.pressure, backlog_.pressure());
    return true;
}

void Outbox::keep_reply(Node to, Bytes head, Bytes body) { keep(to, peers_[to].replies, copy_of(head, body)); }

bool Outbox::keep_plain(Node to, std::vector<std::byte> message) {
    if (credits_.is_lost(to)) return false;
    keep(to, peers_[to].plains, std::move(message));
    return true;
}

void Outbox::keep(Node to, std::list<Waiting>& waiting, std::vector<std::byte> copy) {
    Peer& peer = peers_[to];
    const std::size_t bytes = copy.size();
    waiting.push_back({std::move(copy), credits_.handled_here(to)});
    backlog_.add(bytes);
    if (&waiting != &peer.plains) credits_.set_blocked(to, true);
    if (!std::exchange(peer.is_listed, true)) waiting_nodes_.push_back(to);
}

void Outbox::on_kept_handled(Node from, std::size_t bytes, bool was_held) {
    if (credits_.on_kept_handled(from, was_held)) tell_handled(from);
    if (windows_.is_large(bytes)) on_taken(from, Flow::large, bytes);
}

void Outbox::on_asked(Node from) {
    if (credits_.on_asked(from)) tell_handled(from);
}

void Outbox::tell_handled(Node to) {
    Outgoing<0> credit(Kind::credit, false);
    reply(to, credit.bytes());
    credits_.on_telling(to, !peers_[to].replies.empty());
}

void Outbox::ask_for_credit(Node to) {
    if (!credits_.may_ask(to)) return;
    Outgoing<0> please(Kind::please, false);
    if (try_post(to, please.bytes())) credits_.on_asking(to);
}

bool Outbox::go_on() {
    bool any = false;
    std::erase_if(waiting_nodes_, [&](Node to) {
        Peer& peer = peers_[to];
        any |= drain(to, peer.replies, Sort::reply);
        if (peer.replies.empty()) {
            credits_.on_told_all(to);
            any |= drain(to, peer.requests, Sort::request);
            if (peer.requests.empty()) {
                peer.pressure = 0;
                is_crowded_[to].store(false, std::memory_order_relaxed);
            }
            any |= drain(to, peer.plains, Sort::plain);
        }
        const bool is_blocked = !peer.replies.empty() || !peer.requests.empty();
        credits_.set_blocked(to, is_blocked);
        peer.is_listed = is_blocked || !peer.plains.empty();
        return !peer.is_listed;
    });
    return any;
}

bool Outbox::drain(Node to, std::list<Waiting>& waiting, Sort sort) {
    bool any = false;
    for (; !waiting.empty() && try_drain(to, waiting.front(), sort); any = true) {
        backlog_.remove(waiting.front().copy.size());
        waiting.pop_front();
    }
    return any;
}

bool Outbox::try_drain(Node to, Waiting& next, Sort sort) {
    const Peer& peer = peers_[to];
    switch (sort) {
    case Sort::reply: return post(to, next.copy, {}, next.handled);
    case Sort::request: {
        const bool is_large = windows_.is_large(next.copy.size());
        if (is_large && !windows_.has_room(to, Flow::large, peer.pressure)) return false; // the receiver will tell
        if (credits_.under_way(to) >= requests_max + peer.pressure * requests_per_pressure) {
            ask_for_credit(to); // requests that are held back there may leave too few to be told of
            return false;
        }
        write_pressure(next.copy, peer.pressure);
        if (!post(to, next.copy, {}, credits_.handled_here(to))) return false;
        credits_.on_requested(to, header_in(next.copy));
        credits_.on_waited(to);
        if (is_large) windows_.on_sent(to, Flow::large, next.copy.size());
        return true;
    }
    case Sort::plain:
        if (!windows_.has_room(to, Flow::forwarded)) return false;
        if (!post(to, next.copy, {}, credits_.handled_here(to))) return false;
        windows_.on_sent(to, Flow::forwarded, next.copy.size() - sizeof(Header));
        return true;
    }
    return false;
}

void Outbox::tell_taken(Node to) {
    auto message = outgoing(Kind::taken, false, windows_.tell(to));
    reply(to, message.bytes());
}

void Outbox::tell_all_handled() {
    for (Node to = 0; to < peers_.size(); ++to)
        if (credits_.handled_here(to) != credits_.told(to)) tell_handled(to);
}

std::vector<Header> Outbox::give_up(Node lost) {
    Peer& peer = peers_[lost];
    std::vector<Header> unhandled = credits_.give_up(lost);
    for (const Waiting& waiting : peer.requests) unhandled.push_back(header_in(waiting.copy));
    for (std::list<Waiting>* const list : {&peer.replies, &peer.requests, &peer.plains}) {
        for (const Waiting& waiting : *list) backlog_.remove(waiting.copy.size());
        list->clear();
    }
    return unhandled;
}

} // namespace kumi::engine
