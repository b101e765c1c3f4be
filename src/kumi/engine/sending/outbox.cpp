#include "kumi/engine/sending/outbox.hpp"

#include "kumi/engine/sending/outgoing.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <utility>

namespace kumi::engine {

Outbox::Outbox(pm::Channel& channel) : channel_(channel), peers_(channel.nodes()) {
    waiting_nodes_.reserve(channel.nodes());
}

void Outbox::note_told(Node to, MutableBytes head) noexcept {
    const std::uint64_t handled = tellable(to);
    write_count(head, handled);
    peers_[to].told = handled;
}

bool Outbox::request(Node to, MutableBytes head, Bytes body) {
    if (try_request(to, head, body)) return true;
    if (peers_[to].is_lost) return false;
    if (waiting_bytes_ + head.size() + body.size() > waiting_bytes_max) return false;
    waiting_bytes_ += head.size() + body.size();
    ++requests_waiting_;
    keep(to, peers_[to].requests, head, body);
    return true;
}

void Outbox::reply(Node to, MutableBytes head, Bytes body) {
    Peer& peer = peers_[to];
    if (peer.is_lost || (peer.replies.empty() && post(to, head, body, peer.handled_here))) return;
    keep(to, peer.replies, head, body);
}

void Outbox::keep(Node to, std::list<Waiting>& waiting, Bytes head, Bytes body) {
    Waiting& kept = waiting.emplace_back();
    kept.handled = peers_[to].handled_here;
    kept.copy.resize(head.size() + body.size());
    Pieces(head, body).copy_to(kept.copy.data());
    if (!std::exchange(peers_[to].is_waiting, true)) waiting_nodes_.push_back(to);
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
        any |= drain(to, peer.replies, false);
        if (peer.replies.empty()) {
            peer.is_telling = false;
            any |= drain(to, peer.requests, true);
        }
        peer.is_waiting = !peer.replies.empty() || !peer.requests.empty();
        return !peer.is_waiting;
    });
    return any;
}

bool Outbox::drain(Node to, std::list<Waiting>& waiting, bool are_requests) {
    Peer& peer = peers_[to];
    bool any = false;
    for (; !waiting.empty(); any = true) {
        if (are_requests && peer.requested - peer.handled >= requests_max) break;
        Waiting& next = waiting.front();
        const std::size_t bytes = next.copy.size();
        if (!post(to, next.copy, {}, are_requests ? peer.handled_here : next.handled)) break;
        if (are_requests) {
            ++peer.requested;
            ++unhandled_;
            --requests_waiting_;
            waiting_bytes_ -= bytes;
        }
        waiting.pop_front();
    }
    return any;
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
    for (const Waiting& waiting : peer.requests) waiting_bytes_ -= waiting.copy.size();
    requests_waiting_ -= peer.requests.size();
    peer.requests.clear();
    peer.replies.clear();
}

} // namespace kumi::engine
