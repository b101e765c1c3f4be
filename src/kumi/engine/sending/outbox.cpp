#include "kumi/engine/sending/outbox.hpp"

#include "kumi/engine/sending/outgoing.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <utility>

namespace kumi::engine {

namespace {

/// Of plain messages that wait on a node until its program takes them: of each peer, and of all together.
constexpr std::size_t plain_window_min = 1 << 20, plain_window_max = 8 << 20, plain_windows = 64 << 20;

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

Outbox::Outbox(pm::Channel& channel, std::size_t waiting_bytes_max)
    : channel_(channel), peers_(channel.nodes()), waiting_bytes_max_(waiting_bytes_max),
      plain_window_(std::clamp(plain_windows / channel.nodes(), plain_window_min, plain_window_max)) {
    waiting_nodes_.reserve(channel.nodes());
}

void Outbox::note_told(Node to, MutableBytes head) noexcept {
    const std::uint64_t handled = tellable(to);
    write_count(head, handled);
    peers_[to].told = handled;
}

bool Outbox::request(Node to, MutableBytes head, Bytes body) {
    if (try_request(to, head, body)) return true;
    Peer& peer = peers_[to];
    if (peer.is_lost) return false;
    ++requests_waiting_;
    keep(to, peer.requests, copy_of(head, body));
    const std::size_t pressure = waiting_bytes_max_ == 0 ? pressure_max : waiting_bytes_ / waiting_bytes_max_;
    peer.pressure = std::max(peer.pressure, static_cast<std::uint32_t>(std::min<std::size_t>(pressure, pressure_max)));
    return true;
}

void Outbox::reply(Node to, MutableBytes head, Bytes body) {
    Peer& peer = peers_[to];
    if (peer.is_lost || (peer.replies.empty() && post(to, head, body, peer.handled_here))) return;
    keep(to, peer.replies, copy_of(head, body));
}

bool Outbox::keep_plain(Node to, std::vector<std::byte> message) {
    if (peers_[to].is_lost) return false;
    keep(to, peers_[to].plains, std::move(message));
    return true;
}

void Outbox::keep(Node to, std::list<Waiting>& waiting, std::vector<std::byte> copy) {
    waiting_bytes_ += copy.size();
    set_limit();
    Peer& peer = peers_[to];
    waiting.push_back({std::move(copy), peer.handled_here});
    peer.is_waiting |= &waiting != &peer.plains;
    if (!std::exchange(peer.is_listed, true)) waiting_nodes_.push_back(to);
}

bool Outbox::take_credit(Peer& peer, std::uint16_t more) noexcept {
    if (more > peer.requested - peer.handled) [[unlikely]] return peer.is_lost; // what it said before comes late
    peer.handled += more;
    unhandled_ -= more;
    peer.has_asked = false;
    return true;
}

void Outbox::on_asked(Node from) {
    // If there is nothing new, it asks about what will be handled later, and does not ask again.
    peers_[from].is_asked = peers_[from].handled_here == peers_[from].told;
    if (!peers_[from].is_asked) tell_handled(from);
}

void Outbox::tell_handled(Node to) {
    peers_[to].is_asked = false;
    Outgoing<0> credit(Kind::credit, false);
    reply(to, credit.bytes());
    peers_[to].is_telling = !peers_[to].replies.empty();
}

void Outbox::ask_for_credit(Node to) {
    Peer& peer = peers_[to];
    if (peer.has_asked || peer.requested == peer.handled) return;
    Outgoing<0> please(Kind::please, false);
    peer.has_asked = try_post(to, please.bytes());
}

void Outbox::ask_for_credits() {
    for (Node to = 0; to < peers_.size() && unhandled_ != 0; ++to) ask_for_credit(to);
}

std::string Outbox::describe_unhandled() const {
    std::string text;
    for (Node to = 0; to < peers_.size(); ++to)
        if (!all_handled(to)) text += fmt::format("{} node {}", text.empty() ? "; not yet at" : ",", to);
    return text;
}

bool Outbox::go_on() {
    bool any = false;
    std::erase_if(waiting_nodes_, [&](Node to) {
        Peer& peer = peers_[to];
        any |= drain(to, peer.replies, Sort::reply);
        if (peer.replies.empty()) {
            peer.is_telling = false;
            any |= drain(to, peer.requests, Sort::request);
            if (peer.requests.empty()) peer.pressure = 0;
            any |= drain(to, peer.plains, Sort::plain);
        }
        peer.is_waiting = !peer.replies.empty() || !peer.requests.empty();
        peer.is_listed = peer.is_waiting || !peer.plains.empty();
        return !peer.is_listed;
    });
    if (any) set_limit();
    return any;
}

bool Outbox::drain(Node to, std::list<Waiting>& waiting, Sort sort) {
    bool any = false;
    for (; !waiting.empty() && try_drain(to, waiting.front(), sort); any = true) {
        waiting_bytes_ -= waiting.front().copy.size();
        waiting.pop_front();
    }
    return any;
}

bool Outbox::try_drain(Node to, Waiting& next, Sort sort) {
    Peer& peer = peers_[to];
    switch (sort) {
    case Sort::reply: return post(to, next.copy, {}, next.handled);
    case Sort::request:
        if (peer.requested - peer.handled >= requests_max + peer.pressure * requests_per_pressure) {
            ask_for_credit(to); // requests that are held back there may leave too few to be told of
            return false;
        }
        write_pressure(next.copy, peer.pressure);
        if (!post(to, next.copy, {}, peer.handled_here)) return false;
        ++peer.requested;
        ++unhandled_;
        --requests_waiting_;
        return true;
    case Sort::plain: {
        const Plain& plain = peer.plain[1];
        if (plain.sent - plain.taken > plain_window_ || !post(to, next.copy, {}, peer.handled_here)) return false;
        on_plain_sent(to, true, next.copy.size() - sizeof(Header));
        return true;
    }
    }
    return false;
}

// ---- plain messages

bool Outbox::on_taken(Node from, const Taken& taken) noexcept {
    Peer& peer = peers_[from];
    for (const unsigned sort : {0u, 1u})
        if (taken.bytes[sort] < peer.plain[sort].taken || taken.bytes[sort] > peer.plain[sort].sent) return false;
    for (const unsigned sort : {0u, 1u}) peer.plain[sort].taken = taken.bytes[sort];
    return true;
}

void Outbox::tell_taken(Node to) {
    Peer& peer = peers_[to];
    Taken taken{};
    for (const unsigned sort : {0u, 1u}) taken.bytes[sort] = peer.plain[sort].told = peer.plain[sort].here;
    auto message = outgoing(Kind::taken, false, taken);
    reply(to, message.bytes());
}

void Outbox::tell_all_handled() {
    for (Node to = 0; to < peers_.size(); ++to)
        if (peers_[to].handled_here != peers_[to].told) tell_handled(to);
}

void Outbox::give_up(Node lost) noexcept {
    Peer& peer = peers_[lost];
    peer.is_lost = true;
    unhandled_ -= peer.requested - peer.handled;
    peer.handled = peer.requested;
    requests_waiting_ -= peer.requests.size();
    for (std::list<Waiting>* const list : {&peer.replies, &peer.requests, &peer.plains}) {
        for (const Waiting& waiting : *list) waiting_bytes_ -= waiting.copy.size();
        list->clear();
    }
    set_limit();
}

} // namespace kumi::engine
