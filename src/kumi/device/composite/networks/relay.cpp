#include "kumi/device/composite/networks/relay.hpp"

#include <array>

namespace kumi::device::composite {

bool Relay::is_sound(const Envelope& head, Bytes letter) const noexcept {
    const std::size_t nodes = peers_.all().size();
    if (head.kind > Envelope::Kind::owes || head.source >= nodes || head.destination >= nodes) return false;
    if (head.hops > hops_max || letter.size() < head_bytes(head.hops)) return false;
    for (std::size_t i = 0; i < head.hops; ++i)
        if (hop_of(letter, i) >= nodes) return false;
    if (head.kind == Envelope::Kind::seek) return true;
    if (head.source == peers_.self() || peers_[head.source].ways.empty()) return false;
    return head.destination == peers_.self() || (head.at < head.hops && hop_of(letter, head.at) == peers_.self());
}

void Relay::pass_on(const Envelope& head, Bytes letter, Inlet from) {
    const bool is_last = head.at + 1u == head.hops;
    const Node next = is_last ? head.destination : hop_of(letter, head.at + 1u);
    Peer& peer = peers_[next];
    Peer& source = peers_[head.source];
    const bool is_message = head.kind == Envelope::Kind::message || head.kind == Envelope::Kind::piece;
    if (is_message) source.farewell.set_served();
    const bool is_there = !peer.ways.empty() && !health_.is_lost(peer);
    if (!is_there || peer.ways.is_relayed())
        return tell_source(head, letter, is_last && !peer.ways.empty() && !is_there, next, from);
    ++peers_.counters.passed_on;
    std::array<std::byte, head_bytes_max> changed;
    const std::size_t head_size = head_bytes(head.hops);
    copy_bytes(changed.data(), letter.first(head_size));
    Envelope on = head;
    ++on.at;
    std::memcpy(changed.data(), &on, sizeof on);
    const bool is_about_ways =
        head.kind >= Envelope::Kind::found || head.kind == Envelope::Kind::ping || head.kind == Envelope::Kind::pong;
    if (is_about_ways) return send_urgent(peer, Bytes(changed).first(head_size)); // there is nothing behind it
    PassingLetters& passing = peer.out.passing;
    const auto out = peers_.outlet(peer);
    if (passing.empty() && out &&
        out->channel->try_send(out->number, Bytes(changed).first(head_size), letter.subspan(head_size)))
        return peers_.watch(peer);
    if (!passing.has_room(head, letter.size())) return; // it is a copy: see PassingLetters
    Letter kept(letter.begin(), letter.end());
    copy_bytes(kept.data(), Bytes(changed).first(head_size));
    passing.push(std::move(kept));
    peers_.watch(peer);
    peers_.make_pending(peer);
}

/// There is no way on: no network joins this node with `next` any more, or that is the destination and `has_left`.
void Relay::tell_source(const Envelope& head, Bytes letter, bool has_left, Node next, Inlet from) {
    ++peers_.counters.not_passed_on;
    // These are answers themselves: no node waits for an answer to them.
    if (head.kind == Envelope::Kind::left || head.kind >= Envelope::Kind::found) return;
    Path back = reversed_path(head, letter);
    back.erase(back.begin(), back.end() - head.at);
    answer(head, has_left ? Envelope::Kind::left : Envelope::Kind::broken, next, back, from);
}

void Relay::answer(const Envelope& head, Envelope::Kind kind, Sequence sequence, std::span<const Node> way_back,
                   Inlet from) {
    std::array<std::byte, head_bytes_max> letter;
    const Envelope answer = peers_.envelope(peers_[head.source], kind, sequence);
    const Bytes bytes = Bytes(letter).first(write_head(letter.data(), answer, way_back));
    if (from.link.channel->try_send(from.number, bytes)) return;
    send_urgent(peers_[way_back.empty() ? head.source : way_back.front()], bytes);
}

void Relay::send_urgent(Peer& neighbour, Bytes letter) {
    if (!neighbour.ways.is_neighbour() || neighbour.is_lost) return;
    const Way& way = neighbour.ways.current();
    peers_.watch(neighbour);
    if (neighbour.out.urgent.empty() && way.link->channel->try_send(way.number, letter)) return;
    neighbour.out.urgent.push(letter);
    peers_.make_pending(neighbour);
}

} // namespace kumi::device::composite
