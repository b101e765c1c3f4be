#include "kumi/device/composite/networks/striper.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/log.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace kumi::device::composite {
namespace {

struct PieceHeads {
    Envelope envelope;
    PieceHead piece;
};
static_assert(sizeof(PieceHeads) == 24);

} // namespace

bool Striper::try_send(Peer& peer, const Pieces& message) {
    const std::size_t bytes = message.size();
    const std::uint64_t ahead = peer.stripes.under_way.bytes_since_first(peer.out.sent.bytes);
    if (ahead != 0 && ahead + bytes > std::max(options_.ahead_bytes_max, 2 * bytes)) return peers_.refuse(peer), false;
    const auto rails = static_cast<std::size_t>(std::max(std::popcount(rails_of(peer)), 1));
    const std::size_t size_max = std::min(options_.piece_bytes_max, peers_.message_bytes_max() - sizeof(PieceHead));
    const std::size_t size = std::min(((bytes + rails - 1) / rails + 7) & ~std::size_t{7}, size_max);
    PieceHeads heads{peers_.envelope(peer, Envelope::Kind::piece, peer.out.next),
                     {static_cast<std::uint32_t>(bytes), 0}};
    heads.envelope.asks = true;
    std::array<std::byte, sizeof heads + message_head_max> start;
    KUMI_ASSERT(message.head.size() <= std::min(size, message_head_max));
    for (std::size_t offset = 0; offset < bytes; offset += size) {
        heads.piece.offset = static_cast<std::uint32_t>(offset);
        const Bytes of_message = offset == 0 ? message.head : Bytes{};
        Pieces(bytes_of(heads), of_message).copy_to(start.data());
        const Bytes head = Bytes(start).first(sizeof heads + of_message.size());
        const std::size_t at = offset + of_message.size();
        const Bytes body = message.body.subspan(at - message.head.size(), std::min(offset + size, bytes) - at);
        if (peer.out.own.empty() && give_piece(peer, head, body)) continue;
        if (offset == 0) return peers_.watch(peer), false; // the rails may have failed
        Letter letter(head.size() + body.size());
        Pieces(head, body).copy_to(letter.data());
        peers_.keep_own(peer, std::move(letter));
    }
    ++peer.out.next;
    peer.stripes.under_way.push(heads.envelope.sequence, peer.out.sent.bytes);
    ++peers_.counters.striped;
    peers_.count_sent(peer, bytes);
    return true;
}

bool Striper::give_piece(Peer& peer, Bytes head, Bytes body) {
    Rails& rails = peer.stripes.rails;
    std::size_t first = peer.ways.current_index();
    double least = std::numeric_limits<double>::max();
    const std::uint64_t rails_left = rails_of(peer);
    KUMI_ASSERT(rails_left != 0); // the current way is one: no pieces are given while that is over other nodes
    for (std::uint64_t left = rails_left; left != 0; left &= left - 1) {
        const auto i = static_cast<std::size_t>(std::countr_zero(left));
        const double time = rails.time_for(i, look(peer, i) + head.size() + body.size());
        if (time < least) least = time, first = i;
    }
    Way& way = peer.ways[first];
    // If that has no room, the others would still be later.
    if (!way.link->channel->try_send(way.number, head, body)) return false;
    way.has_pieces = true;
    return true;
}

/// Tells the rails how far one of them is; answers how many bytes wait there.
std::uint64_t Striper::look(Peer& peer, std::size_t index) noexcept {
    const Way& way = peer.ways[index];
    const std::uint64_t waiting = way.link->ways->waiting_bytes(way.number);
    peer.stripes.rails.look(index, way.link->channel->sent(way.number).bytes, waiting);
    return waiting;
}

bool Striper::is_rail(const Peer& peer, std::size_t index) const noexcept {
    const Way& way = peer.ways[index];
    const bool works = index == peer.ways.current_index() || (peers_.may_use(way) && !way.doubted && !way.suspected);
    return !way.is_relayed() && works;
}

/// The rails that work; a bit for each way.
std::uint64_t Striper::working_rails(const Peer& peer) const noexcept {
    std::uint64_t rails = 0;
    for (std::size_t i = 0; i < peer.ways.size() && i < 64; ++i)
        if (is_rail(peer, i)) rails |= std::uint64_t{1} << i;
    return rails;
}

/// The rails that pieces go by.
std::uint64_t Striper::rails_of(const Peer& peer) const noexcept {
    const std::uint64_t working = working_rails(peer), worthy = working & peer.stripes.rails.worthy();
    return worthy != 0 ? worthy : working;
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
    if (peer.is_lost || peer.stripes.message_bytes_min == StripeOptions::none().message_bytes_min) return;
    Rails& rails = peer.stripes.rails;
    const std::uint64_t working = working_rails(peer);
    bool are_clear = peer.out.own.empty();
    for (std::size_t i = 0; i < peer.ways.size() && i < 64; ++i) {
        if (peer.ways[i].is_relayed()) continue;
        look(peer, i);
        are_clear = are_clear && (i == peer.ways.current_index() || !peer.ways[i].has_pieces);
    }
    const bool has_tried = rails.on_time(now, working, peer.ways.current_index(), are_clear);
    for (std::uint64_t left = rails.to_be_timed() & working; left != 0; left &= left - 1)
        time_rail(peer, static_cast<std::size_t>(std::countr_zero(left)), now);
    if (!has_tried) return;
    const auto [single, striped] = rails.rates();
    base::log_debug(
        "composite: large messages to node {}: {:.0f} MB/s by one network, {:.0f} by all that are worth it: they go {}",
        peer.node, single / 1e6, striped / 1e6, rails.are_striped() ? "in pieces" : "whole");
}

/// Sends a letter without content over a rail, to time it.
void Striper::time_rail(Peer& peer, std::size_t index, Instant now) {
    const Way& way = peer.ways[index];
    if (!way.link->ways->all_arrived(way.number)) return;
    Letter letter(std::min(options_.piece_bytes_max, peers_.message_bytes_max()) + sizeof(Envelope));
    const Envelope head = peers_.envelope(peer, Envelope::Kind::timed, 0);
    std::memcpy(letter.data(), &head, sizeof head);
    if (!way.link->channel->try_send(way.number, letter)) return;
    peer.stripes.rails.on_timed_given(index, letter.size(), now);
    peers_.make_pending(peer); // to see when it has arrived
}

void Striper::look_for_timed(Peer& peer) noexcept {
    Rails& rails = peer.stripes.rails;
    for (std::size_t i = 0; i < peer.ways.size() && i < 64; ++i)
        if (rails.is_timing(i) && peer.ways[i].link->ways->all_arrived(peer.ways[i].number))
            rails.on_timed_arrived(i, peers_.now());
}

} // namespace kumi::device::composite
