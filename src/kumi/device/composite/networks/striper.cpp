#include "kumi/device/composite/networks/striper.hpp"

#include "kumi/base/log.hpp"

#include <algorithm>
#include <bit>

namespace kumi::device::composite {
namespace {

struct PieceHeads {
    Envelope envelope;
    PieceHead piece;
};
static_assert(sizeof(PieceHeads) == 24);

} // namespace

bool Striper::try_send(Peer& peer, Bytes bytes) {
    const std::uint64_t ahead = peer.stripes.under_way.bytes_since_first(peer.out.sent.bytes);
    if (ahead != 0 && ahead + bytes.size() > std::max(options_.ahead_bytes_max, 2 * bytes.size()))
        return peers_.refuse(peer), false;
    const auto rails = static_cast<std::size_t>(std::max(std::popcount(rails_of(peer)), 1));
    const std::size_t size_max = std::min(options_.piece_bytes_max, peers_.message_bytes_max() - sizeof(PieceHead));
    const std::size_t size = std::min(((bytes.size() + rails - 1) / rails + 7) & ~std::size_t{7}, size_max);
    PieceHeads heads{peers_.envelope(peer, Envelope::Kind::piece, peer.out.next),
                     {static_cast<std::uint32_t>(bytes.size()), 0}};
    heads.envelope.asks = true;
    for (std::size_t offset = 0; offset < bytes.size(); offset += size) {
        heads.piece.offset = static_cast<std::uint32_t>(offset);
        const Bytes body = bytes.subspan(offset, std::min(size, bytes.size() - offset));
        if (peer.out.own.empty() && give_piece(peer, bytes_of(heads), body)) continue;
        if (offset == 0) return peers_.watch(peer), false; // the rails may have failed
        Letter letter(sizeof heads + body.size());
        Pieces(bytes_of(heads), body).copy_to(letter.data());
        peers_.keep_own(peer, std::move(letter));
    }
    ++peer.out.next;
    peer.stripes.under_way.push(heads.envelope.sequence, peer.out.sent.bytes);
    ++peers_.counters.striped;
    peers_.count_sent(peer, bytes.size());
    return true;
}

bool Striper::give_piece(Peer& peer, Bytes head, Bytes body) {
    Rails& rails = peer.stripes.rails;
    for (std::uint64_t left = rails_of(peer); left != 0;) {
        auto next = static_cast<std::size_t>(std::countr_zero(left));
        for (std::size_t i = next + 1; i < peer.ways.size() && i < 64; ++i)
            if ((left >> i & 1) != 0 && rails.turn(i) < rails.turn(next)) next = i;
        left &= ~(std::uint64_t{1} << next);
        Way& way = peer.ways[next];
        if (!way.link->channel->try_send(way.number, head, body)) continue;
        way.has_pieces = true;
        rails.on_given(next, head.size() + body.size());
        return true;
    }
    return false;
}

bool Striper::is_rail(const Peer& peer, std::size_t index) const noexcept {
    const Way& way = peer.ways[index];
    const bool works = index == peer.ways.current_index() || (peers_.may_use(way) && !way.doubted && !way.suspected);
    return !way.is_relayed() && works;
}

/// A bit for each way.
std::uint64_t Striper::rails_of(const Peer& peer) const noexcept {
    std::uint64_t rails = 0;
    for (std::size_t i = 0; i < peer.ways.size() && i < 64; ++i)
        if (is_rail(peer, i)) rails |= std::uint64_t{1} << i;
    return rails;
}

void Striper::on_arrived(Peer& peer, Sequence expected) noexcept {
    if (!peer.stripes.under_way.on_arrived(expected)) return;
    look_ahead(peer);
    peers_.note_room(peer);
}

void Striper::look_ahead(Peer& peer) noexcept {
    const std::uint64_t ahead = peer.stripes.under_way.bytes_since_first(peer.out.sent.bytes);
    peer.stripes.held = ahead > std::max(options_.ahead_bytes_max, 2 * peers_.message_bytes_max());
}

void Striper::measure(Peer& peer, Instant now) {
    Rails& rails = peer.stripes.rails;
    bool are_clear = peer.out.own.empty();
    for (std::size_t i = 0; i < peer.ways.size(); ++i)
        are_clear = are_clear && (i == peer.ways.current_index() || !peer.ways[i].has_pieces);
    if (peer.is_lost || !rails.on_time(now, rails_of(peer), are_clear)) return;
    const auto [single, striped] = rails.rates();
    base::log_debug(
        "composite: large messages to node {}: {:.0f} MB/s by one network, {:.0f} by all that join it: they go {}",
        peer.node, single / 1e6, striped / 1e6, rails.are_striped() ? "in pieces" : "whole");
}

} // namespace kumi::device::composite
