#include "kumi/device/composite/networks/networks.hpp"

#include <algorithm>

namespace kumi::device::composite {

Networks::Networks(Node self, std::vector<Link> links, const std::vector<std::vector<PlannedWay>>& ways_to,
                   const StripeOptions& stripes)
    : peers_(self, std::move(links), ways_to, stripes), health_(peers_), striper_(peers_, stripes),
      sender_(peers_, striper_), receiver_(peers_), relay_(peers_, health_), paths_(peers_, health_, relay_),
      failover_(peers_, health_, striper_, sender_, paths_), closing_(peers_, health_) {
    for (Peer& peer : peers_.all()) {
        const Way* const relayed = peer.ways.relayed();
        if (relayed == nullptr || relayed->path.empty()) continue;
        peer.hops_planned = relayed->path.size();
        paths_.take_path(peer, relayed->path, false);
    }
}

// ---- letters

bool Networks::on_message(std::uint32_t link, pm::Message& message, pm::Handler handler, Instant now) {
    peers_.set_now(now);
    Envelope head;
    if (!read_value(message.bytes(), head)) return false; // a greeting of the probe that comes late
    if (!relay_.is_sound(head, message.bytes())) return ++peers_.counters.unsound, false;
    const Inlet from{peers_.links()[link], message.source()};
    if (head.kind == Envelope::Kind::seek) return paths_.on_seek(head, message.bytes(), from), false;
    if (head.destination != peers_.self()) return relay_.pass_on(head, message.bytes(), from), false;
    Peer& peer = peers_[head.source];
    if (head.hops != 0 || !peer.in.way_back.empty()) [[unlikely]]
        peer.in.way_back = reversed_path(head, message.bytes());
    if (head.kind == Envelope::Kind::message) return receiver_.take(peer, head, message, handler);
    if (head.kind == Envelope::Kind::piece) return receiver_.take_piece(peer, head, message, handler);
    on_word(peer, head, message.bytes(), from, now);
    return false;
}

/// What a peer says about ways, arrivals and leaving.
void Networks::on_word(Peer& peer, const Envelope& head, Bytes letter, Inlet from, Instant now) {
    switch (head.kind) {
    case Envelope::Kind::ping:
        if (head.hops == 0) return failover_.on_ping(peer, head, from);
        return relay_.answer(head, Envelope::Kind::pong, head.sequence, reversed_path(head, letter), from);
    case Envelope::Kind::pong: return failover_.on_pong(peer, head, letter, now);
    case Envelope::Kind::arrived: return sender_.on_arrived(peer, head.sequence, now);
    case Envelope::Kind::how_far: return peers_.owe_word(peer);
    case Envelope::Kind::deaf: return failover_.on_deaf(peer, head.sequence, true, now);
    case Envelope::Kind::hears: return failover_.on_deaf(peer, head.sequence, false, now);
    case Envelope::Kind::left:
        // Where a network joins the pair, its device knows better.
        if (head.sequence < peers_.all().size() && !peers_[head.sequence].ways.empty() &&
            peers_[head.sequence].ways.is_relayed())
            health_.lose(peers_[head.sequence]);
        return;
    case Envelope::Kind::leaving: return peer.farewell.on_leaving();
    case Envelope::Kind::done: return peer.farewell.on_done();
    case Envelope::Kind::closed: return health_.on_closed(peer);
    case Envelope::Kind::found: return paths_.on_found(peer, head, letter, now);
    case Envelope::Kind::broken: return failover_.on_broken(head.source, head.sequence, now);
    case Envelope::Kind::owes: return paths_.on_owes(head.sequence, now);
    case Envelope::Kind::message:
    case Envelope::Kind::piece:
    case Envelope::Kind::timed:
    case Envelope::Kind::seek: return;
    }
}

void Networks::pump_pending(Instant now) {
    peers_.set_now(now);
    std::vector<Node>& pending = peers_.pending();
    // Several may wait for room on one channel: another is the first each time, and what is said about ways goes before
    // all messages.
    std::rotate(pending.begin(), pending.begin() + 1, pending.end());
    for (std::size_t i = 0; i < pending.size(); ++i) sender_.pump_words(peers_[pending[i]]);
    for (std::size_t i = 0; i < pending.size(); ++i) { // others may be added meanwhile
        Peer& peer = peers_[pending[i]];
        sender_.pump(peer);
        if (peer.ways.next()) failover_.try_better(peer, now);
    }
    std::erase_if(pending, [&](Node node) {
        return sender_.is_waiting(peers_[node]) ? false : (peers_[node].pending = false, true);
    });
}

// ---- time

void Networks::on_time(Instant now) {
    peers_.on_tick(now);
    std::vector<Node>& watched = peers_.watched();
    for (std::size_t i = 0; i < watched.size(); ++i) { // others may be added meanwhile
        Peer& peer = peers_[watched[i]];
        failover_.consider(peer, now);
        sender_.pump(peer);
        striper_.measure(peer, now);
    }
    if (health_.is_closing()) {
        closing_.on_time(now);
        go_on(now); // a relay may leave when it is let go: it passes that on before
        closing_.tell_relays();
    }
    std::erase_if(watched, [&](Node node) {
        return health_.is_settled(peers_[node]) ? (peers_[node].watched = false, true) : false;
    });
}

void Networks::on_losses(Instant now) {
    peers_.set_now(now);
    for (Peer& peer : peers_.all()) {
        if (peer.is_lost || !health_.is_reported_gone(peer)) continue; // a way that has failed is left when it is used
        peers_.watch(peer);
        failover_.consider(peer, now);
        sender_.pump(peer);
    }
}

void Networks::on_interfaces_changed(Instant now) {
    peers_.set_now(now);
    failover_.on_interfaces_changed();
    on_time(now);
}

// ---- state

int Networks::link_to(Node to) const noexcept {
    const Peer* peer = &peers_[to];
    if (peer->ways.is_relayed()) {
        const auto first = peer->ways.first_relay();
        if (!first) return -1;
        peer = &peers_[*first];
    }
    return peer->ways.is_neighbour() ? static_cast<int>(peer->ways.current().link->index) : -1;
}

} // namespace kumi::device::composite
