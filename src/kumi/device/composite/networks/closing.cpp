#include "kumi/device/composite/networks/closing.hpp"

#include <algorithm>

namespace kumi::device::composite {
namespace {

/// After this time a node that closes tells its peers so, because it still waits for some of them.
constexpr Duration short_wait = std::chrono::milliseconds(100);

} // namespace

void Closing::set_served(const std::vector<Node>& sources) {
    for (const Node source : sources)
        if (!peers_[source].ways.empty()) peers_[source].farewell.set_served();
}

void Closing::begin() {
    health_.begin_close();
    for (const Link& link : peers_.links()) link.ways->begin_close();
    for (Peer& peer : peers_.all())
        if (!peer.ways.empty()) peers_.watch(peer);
    tell_closed();
}

void Closing::on_time(Instant now) {
    if (began_ == Instant{}) began_ = now;
    tell_closed();
}

void Closing::tell_closed() {
    const bool waits_long = began_ != Instant{} && peers_.now() - began_ >= short_wait;
    const bool stays = waits_long || is_relaying();
    for (Peer& peer : peers_.all()) {
        if (peer.ways.empty() || peer.farewell.has_told_closed() || health_.is_lost(peer)) continue;
        if (!(stays || peer.ways.is_relayed()) || !health_.has_all(peer)) continue;
        peer.farewell.set_told_closed();
        peers_.note(peer, Envelope::Kind::closed);
    }
}

void Closing::tell_relays() {
    std::vector<Peer>& all = peers_.all();
    for (Peer& peer : all)
        if (!peer.is_lost && peer.farewell.asks(peers_.now())) peers_.note(peer, Envelope::Kind::leaving);
    const auto has_all = [&](const Peer& peer) {
        return peer.ways.empty() || health_.is_lost(peer) || (peer.out.own.empty() && !owes_closed(peer));
    };
    if (!std::all_of(all.begin(), all.end(), has_all)) return;
    for (Peer& peer : all)
        if (peer.farewell.take_question()) peers_.note(peer, Envelope::Kind::done);
}

/// The peer, which other nodes join with this one, is still to be told that this node takes no more messages.
bool Closing::owes_closed(const Peer& peer) const noexcept {
    const auto is_closed = [](const Envelope& note) { return note.kind == Envelope::Kind::closed; };
    return peer.ways.is_relayed() && health_.is_closing() &&
           (!peer.farewell.has_told_closed() || peer.out.notes.has(is_closed));
}

bool Closing::have_all_arrived() const noexcept {
    const auto has_all = [&](const Peer& peer) {
        if (peer.ways.empty() || health_.is_lost(peer)) return true;
        const bool owes_word = !peer.out.notes.empty() || peer.in.owes_word || peer.farewell.owes_answer();
        return health_.has_all(peer) && !owes_word && !owes_closed(peer);
    };
    return std::all_of(peers_.all().begin(), peers_.all().end(), has_all);
}

bool Closing::is_relaying() const noexcept {
    return std::any_of(peers_.all().begin(), peers_.all().end(), [&](const Peer& peer) {
        return peer.farewell.needs_this_node() && !health_.is_lost(peer);
    });
}

void Closing::give_up_unused() noexcept {
    for (Peer& peer : peers_.all())
        for (std::size_t i = 0; i < peer.ways.size(); ++i) {
            const Way& way = peer.ways[i];
            const bool carries = i == peer.ways.current_index() || way.has_pieces;
            const bool is_used = carries && peers_.is_up(way) && !health_.is_lost(peer);
            if (!way.is_relayed() && !is_used && !way.link->ways->all_arrived(way.number))
                way.link->channel->give_up(way.number);
        }
}

} // namespace kumi::device::composite
