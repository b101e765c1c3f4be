#include "kumi/device/composite/peers/peers.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace kumi::device::composite {

bool Outlet::give(Bytes letter) const noexcept {
    if (path == nullptr) return channel->try_send(number, letter);
    std::array<std::byte, head_bytes_max> head;
    const std::size_t bytes = write_head(head.data(), head_of(letter), *path);
    return channel->try_send(number, Bytes(head).first(bytes), letter.subspan(sizeof(Envelope)));
}

Peers::Peers(Node self, std::vector<Link> links, const std::vector<std::vector<PlannedWay>>& ways_to,
             const StripeOptions& stripes)
    : self_(self), message_bytes_max_(links.empty() ? 0 : std::numeric_limits<std::size_t>::max()),
      links_(std::move(links)), peers_(ways_to.size()) {
    for (std::uint32_t index = 0; Link& link : links_) {
        link.index = index++;
        message_bytes_max_ = std::min(message_bytes_max_, link.channel->traits().message_bytes_max - head_bytes_max);
    }
    const std::size_t ahead_bytes = std::max(stripes.ahead_bytes_max, 2 * message_bytes_max_);
    for (Node node = 0; node < peers_.size(); ++node) {
        Peer& peer = peers_[node];
        peer.node = node;
        add_ways(peer, ways_to[node]);
        if (peer.ways.use_first_that_answers()) watch(peer);
        const auto networks =
            std::count_if(peer.ways.begin(), peer.ways.end(), [](const Way& way) { return !way.is_relayed(); });
        peer.stripes.message_bytes_min =
            networks > 1 ? stripes.message_bytes_min : StripeOptions::none().message_bytes_min;
        peer.stripes.rails = Rails(peer.ways.size(), stripes.always);
        peer.in.joiner = Joiner(message_bytes_max_, 2 * ahead_bytes);
        update_plain(peer);
    }
}

void Peers::add_ways(Peer& peer, const std::vector<PlannedWay>& planned_ways) {
    KUMI_ASSERT(planned_ways.size() <= 255);
    for (const PlannedWay& planned : planned_ways) {
        KUMI_ASSERT(peer.ways.relayed() == nullptr);
        Link* const link = planned.is_relayed ? nullptr : &links_[planned.link];
        peer.ways.add({.link = link,
                       .number = planned.number,
                       .path = planned.path,
                       .name = link != nullptr ? link->name : "other nodes"});
        if (planned.is_silent) peer.ways.back().set_never_answered();
    }
}

void Peers::watch(Peer& peer) noexcept {
    if (std::exchange(peer.watched, true)) return;
    if (watched_.empty()) ticked_ = now_;
    watched_.push_back(peer.node);
}

void Peers::make_pending(Peer& peer) {
    if (!std::exchange(peer.pending, true)) pending_.push_back(peer.node);
}

Envelope Peers::envelope(const Peer& peer, Envelope::Kind kind, Sequence sequence) const noexcept {
    return {
        .sequence = sequence, .source = self_, .destination = peer.node, .kind = kind, .asks = 0, .hops = 0, .at = 0};
}

void Peers::keep_own(Peer& peer, Letter letter) {
    peer.out.own.push(std::move(letter));
    update_plain(peer);
    make_pending(peer);
}

void Peers::note(Peer& peer, Envelope::Kind kind, Sequence sequence) {
    peer.out.notes.add(envelope(peer, kind, sequence));
    make_pending(peer);
}

void Peers::owe_word(Peer& peer) {
    peer.in.owes_word = true;
    make_pending(peer);
}

void Peers::update_plain(Peer& peer) noexcept {
    const bool is_plain = !peer.ways.empty() && peer.out.own.empty() && !peer.ways.next() && peer.takes_messages() &&
                          !peer.stripes.held && !peer.ways.is_relayed();
    peer.out.plain_below = is_plain ? peer.stripes.message_bytes_min : 0;
    if (is_plain) note_room(peer);
}

void Peers::refuse(Peer& peer) noexcept {
    peer.out.refused = true;
    if (!peer.stripes.under_way.empty()) watch(peer);
}

std::optional<Outlet> Peers::outlet(const Peer& peer, std::size_t index) const noexcept {
    const Way& way = peer.ways[index];
    return way.is_relayed() ? outlet_by(way.path) : Outlet{way.link->channel, way.number};
}

std::optional<Outlet> Peers::outlet_by(const Path& path) const noexcept {
    if (path.empty()) return std::nullopt;
    const Peer& first = peers_[path.front()];
    if (!first.ways.is_neighbour() || first.ways.next() || first.is_lost) return std::nullopt;
    return Outlet{first.ways.current().link->channel, first.ways.current().number, &path};
}

bool Peers::is_up(const Way& way) const noexcept {
    if (!way.is_relayed()) return way.link->up && !way.link->channel->lost(way.number);
    if (way.path.empty()) return false;
    const Peer& first = peers_[way.path.front()];
    return first.ways.is_neighbour() && !first.is_lost && is_up(first.ways.current());
}

} // namespace kumi::device::composite
