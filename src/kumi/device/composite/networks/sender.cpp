#include "kumi/device/composite/networks/sender.hpp"

#include <algorithm>
#include <array>
#include <exception>

namespace kumi::device::composite {

// ---- messages

bool Sender::try_send(Node to, Bytes bytes) noexcept {
    Peer& peer = peers_[to];
    if (peer.reservation.is_out) return peer.reservation.missed = true, false;
    if (bytes.size() < peer.out.plain_below) [[likely]] {
        if (try_send_plainly(peer, bytes)) return true;
        if (!peers_.is_contended(peer)) return false;
        return try_send_in_place(peer, bytes);
    }
    return try_send_otherwise(peer, bytes);
}

bool Sender::try_send(Node to, Bytes head, Bytes body) noexcept {
    Peer& peer = peers_[to];
    if (peer.reservation.is_out) return peer.reservation.missed = true, false;
    if (body.size() >= peer.out.plain_below) [[unlikely]]
        return try_send_otherwise(peer, {head, body});
    if (head.size() <= Striper::message_head_max) [[likely]] {
        if (try_send_plainly(peer, head, body)) return true;
        if (!peers_.is_contended(peer)) return false;
    }
    return try_send_in_place(peer, {head, body});
}

inline bool Sender::try_send_plainly(Peer& peer, Bytes bytes) noexcept {
    const Way& way = peer.ways.current();
    const Envelope head = peers_.envelope(peer, Envelope::Kind::message, peer.out.next);
    if (!way.link->channel->try_send(way.number, bytes_of(head), bytes))
        return peers_.watch(peer), false; // it may have failed
    ++peer.out.next;
    peers_.count_sent(peer, bytes.size());
    return true;
}

/// `head` has Striper::message_head_max bytes at most.
inline bool Sender::try_send_plainly(Peer& peer, Bytes head, Bytes body) noexcept {
    const Way& way = peer.ways.current();
    const Envelope first = peers_.envelope(peer, Envelope::Kind::message, peer.out.next);
    // Devices take two pieces, and these are three.
    std::array<std::byte, sizeof first + Striper::message_head_max> heads;
    Pieces(bytes_of(first), head).copy_to(heads.data());
    if (!way.link->channel->try_send(way.number, Bytes(heads).first(sizeof first + head.size()), body))
        return peers_.watch(peer), false; // it may have failed
    ++peer.out.next;
    peers_.count_sent(peer, head.size() + body.size());
    return true;
}

bool Sender::try_send_in_place(Peer& peer, const Pieces& message) noexcept {
    const pm::SendSlot slot = try_reserve(peer.node, message.size());
    if (!slot) return false;
    message.copy_to(slot.bytes().data());
    commit(slot);
    return true;
}

/// Sends a message that cannot simply go by the current way: it is large enough for stripes, or other letters must
/// leave before it.
bool Sender::try_send_otherwise(Peer& peer, const Pieces& message) noexcept {
    if (message.size() < peer.stripes.message_bytes_min) return try_send_in_place(peer, message);
    if (!peer.out.own.empty()) pump(peer);
    Rails& rails = peer.stripes.rails;
    const bool may_stripe = peer.out.is_plain() && message.head.size() <= Striper::message_head_max;
    const bool is_sent =
        may_stripe && rails.are_striped() ? striper_.try_send(peer, message) : try_send_whole(peer, message);
    if (!is_sent) rails.on_refused();
    return is_sent;
}

bool Sender::try_send_whole(Peer& peer, const Pieces& message) noexcept {
    if (peer.out.is_plain() && message.head.size() <= Striper::message_head_max) {
        if (try_send_plainly(peer, message.head, message.body)) return true;
        if (!peers_.is_contended(peer)) return false;
    }
    return try_send_in_place(peer, message);
}

pm::SendSlot Sender::try_reserve(Node to, std::size_t bytes) noexcept {
    Peer& peer = peers_[to];
    Reservation& reservation = peer.reservation;
    if (reservation.is_out) return reservation.missed = true, pm::SendSlot{};
    if (!peer.out.own.empty()) pump(peer);
    reservation.way = peer.ways.current_index();
    if (peer.out.is_plain()) {
        const Way& way = peer.ways.current();
        if (const pm::SendSlot slot = way.link->channel->try_reserve(way.number, sizeof(Envelope) + bytes)) {
            reservation.is_out = true;
            reservation.is_here = false;
            return {to, slot.bytes().subspan(sizeof(Envelope)), slot.token()};
        }
        peers_.watch(peer); // it may have failed
        if (!peers_.is_contended(peer)) return {};
    }
    const OwnLetters& own = peer.out.own;
    const bool is_relayed = peer.ways.is_relayed();
    const bool may_wait_here = is_relayed || (peers_.is_contended(peer) && !peer.stripes.held);
    const bool has_room = own.empty() || (is_relayed && own.bytes() + bytes <= RelayWindow::bytes_max);
    if (peer.ways.next() || !may_wait_here || !has_room || !peer.takes_messages())
        return peers_.refuse(peer), pm::SendSlot{};
    try {
        reservation.letter.resize(sizeof(Envelope) + bytes);
    } catch (const std::exception&) { // no memory
        return peers_.refuse(peer), pm::SendSlot{};
    }
    reservation.is_out = reservation.is_here = true;
    return {to, MutableBytes(reservation.letter).subspan(sizeof(Envelope))};
}

bool Sender::commit(const pm::SendSlot& slot) noexcept {
    Peer& peer = peers_[slot.to()];
    Reservation& reservation = peer.reservation;
    const Way& way = peer.ways[reservation.way];
    const std::size_t bytes = slot.bytes().size();
    Envelope head = peers_.envelope(peer, Envelope::Kind::message, peer.out.next++);
    head.asks = peer.ways.is_relayed();
    reservation.is_out = false;
    if (reservation.is_here) {
        std::memcpy(reservation.letter.data(), &head, sizeof head);
        Letter letter = std::exchange(reservation.letter, {});
        if (peer.takes_messages()) peers_.keep_own(peer, std::move(letter));
    } else {
        const MutableBytes whole(slot.bytes().data() - sizeof head, bytes + sizeof head);
        std::memcpy(whole.data(), &head, sizeof head);
        const pm::SendSlot own(way.number, whole, slot.token());
        const bool is_current = reservation.way == peer.ways.current_index() && peer.out.own.empty();
        if (is_current && !way.link->channel->lost(way.number)) {
            way.link->channel->commit(own);
        } else { // the way has failed since
            if (peer.takes_messages()) peers_.keep_own(peer, Letter(whole.begin(), whole.end()));
            way.link->channel->cancel(own);
        }
    }
    peers_.count_sent(peer, bytes);
    if (!peer.out.own.empty()) pump(peer);
    return std::exchange(reservation.missed, false);
}

bool Sender::cancel(const pm::SendSlot& slot) noexcept {
    Peer& peer = peers_[slot.to()];
    Reservation& reservation = peer.reservation;
    const Way& way = peer.ways[reservation.way];
    reservation.is_out = false;
    if (reservation.is_here) reservation.letter.clear();
    else
        way.link->channel->cancel(
            {way.number, MutableBytes(slot.bytes().data() - sizeof(Envelope), slot.bytes().size() + sizeof(Envelope)),
             slot.token()});
    return std::exchange(reservation.missed, false);
}

// ---- what waits for room

bool Sender::is_waiting(const Peer& peer) const noexcept {
    const Outbox& out = peer.out;
    const bool has_own = peer.ways.is_relayed() ? out.own.next() != nullptr : !out.own.empty();
    const auto owes_pong = [](const Way& way) { return way.owes_pong.has_value(); };
    return has_own || !out.passing.empty() || !out.notes.empty() || !out.urgent.empty() || peer.in.owes_word ||
           peer.ways.next() || peer.stripes.rails.is_timing() ||
           std::any_of(peer.ways.begin(), peer.ways.end(), owes_pong);
}

void Sender::pump(Peer& peer) {
    if (peer.stripes.rails.is_timing()) [[unlikely]]
        striper_.look_for_timed(peer);
    pump_words(peer);
    if (peer.ways.is_relayed()) return_passing(peer);
    const auto out = peers_.outlet(peer);
    if (!out) return;
    if (std::exchange(peer.out.passes_next, !peer.out.passes_next)) {
        pump_passing(peer, *out);
        pump_own(peer, *out);
    } else {
        pump_own(peer, *out);
        pump_passing(peer, *out);
    }
}

void Sender::pump_passing(Peer& peer, const Outlet& out) {
    for (PassingLetters& passing = peer.out.passing; !passing.empty(); passing.pop_front())
        if (!out.channel->try_send(out.number, passing.front())) return;
}

/// What others gave this node for a peer that no network joins with it any more is theirs to send by another path.
void Sender::return_passing(Peer& peer) {
    for (PassingLetters& passing = peer.out.passing; !passing.empty(); passing.pop_front()) {
        Peer& source = peers_[head_of(passing.front()).source];
        ++peers_.counters.not_passed_on;
        if (!source.is_lost) peers_.note(source, Envelope::Kind::broken, peer.node);
    }
}

void Sender::pump_words(Peer& peer) {
    pump_pongs(peer);
    if (!peer.out.urgent.empty()) pump_urgent(peer);
    const auto out = peers_.outlet(peer);
    // A message that was passed on to here tells of a path back, and that the peer may hear nothing otherwise.
    const auto back = peers_.outlet_by(peer.in.way_back);
    if (peer.in.owes_word && send_control(peer, back ? back : out, Envelope::Kind::arrived, peer.in.inbox.expected()))
        peer.in.owes_word = false;
    for (Notes& notes = peer.out.notes; out && !notes.empty(); notes.pop_front())
        if (!out->give(bytes_of(notes.front()))) return;
}

void Sender::pump_pongs(Peer& peer) {
    for (std::size_t i = 0; i < peer.ways.size(); ++i) {
        auto& owed = peer.ways[i].owes_pong;
        if (!owed) continue;
        const bool is_in_vain = peer.is_lost || !peers_.is_up(peer.ways[i]);
        if (is_in_vain || send_control(peer, peers_.outlet(peer, i), Envelope::Kind::pong, *owed)) owed.reset();
    }
}

void Sender::pump_urgent(Peer& neighbour) noexcept {
    UrgentLetters& urgent = neighbour.out.urgent;
    if (neighbour.ways.is_relayed()) return urgent.clear(); // no neighbour any more: nodes that seek ask again
    const Way& way = neighbour.ways.current();
    while (!urgent.empty() && way.link->channel->try_send(way.number, urgent.front())) urgent.pop_front();
}

void Sender::pump_own(Peer& peer, const Outlet& out) {
    OwnLetters& own = peer.out.own;
    if (peer.ways.is_relayed()) {
        for (const Letter* letter = own.next(); letter != nullptr && out.give(*letter); letter = own.next())
            own.on_given(peers_.now());
        return;
    }
    for (; !own.empty(); own.pop_front()) { // the device keeps it now
        const Bytes letter = own.front();
        const bool is_piece = head_of(letter).kind == Envelope::Kind::piece;
        if (!(is_piece ? striper_.give_piece(peer, letter, {}) : out.channel->try_send(out.number, letter))) break;
    }
    peers_.update_plain(peer);
}

bool Sender::send_control(const Peer& peer, const std::optional<Outlet>& out, Envelope::Kind kind,
                          Sequence sequence) const noexcept {
    return out && out->give(bytes_of(peers_.envelope(peer, kind, sequence)));
}

void Sender::on_arrived(Peer& peer, Sequence expected, Instant now) {
    if (peer.out.own.on_arrived(expected, now)) {
        peers_.note_room(peer);
        if (is_waiting(peer)) peers_.make_pending(peer);
    }
    striper_.on_arrived(peer, expected);
    peers_.update_plain(peer);
}

} // namespace kumi::device::composite
