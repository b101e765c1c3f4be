#include "kumi/device/composite/networks/closing.hpp"

#include <algorithm>

namespace kumi::device::composite {

void Closing::set_served(const std::vector<Node>& sources) {
    for (const Node source : sources)
        if (!peers_[source].ways.empty()) peers_[source].farewell.set_served();
}

void Closing::begin() {
    health_.begin_close();
    for (const Link& link : peers_.links()) link.ways->begin_close();
    for (Peer& peer : peers_.all())
        if (!peer.ways.empty()) peers_.watch(peer);
}

void Closing::tell_relays() {
    std::vector<Peer>& all = peers_.all();
    for (Peer& peer : all)
        if (!peer.is_lost && peer.farewell.asks(peers_.now())) peers_.note(peer, Envelope::Kind::leaving);
    const auto has_all = [](const Peer& peer) { return peer.ways.empty() || peer.is_lost || peer.out.own.empty(); };
    if (!std::all_of(all.begin(), all.end(), has_all)) return;
    for (Peer& peer : all)
        if (peer.farewell.take_question()) peers_.note(peer, Envelope::Kind::done);
}

bool Closing::have_all_arrived() const noexcept {
    const auto has_all = [&](const Peer& peer) {
        const bool owes_word = !peer.out.notes.empty() || peer.in.owes_word || peer.farewell.owes_answer();
        return peer.ways.empty() || health_.is_lost(peer) || (health_.has_all(peer) && !owes_word);
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
