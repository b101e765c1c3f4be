// Messages in pieces.

#include "kumi/base/log.hpp"
#include "kumi/device/composite/networks/networks.hpp"

#include <algorithm>
#include <bit>

namespace kumi::device::composite {
namespace {

struct PieceHeads {
    Envelope envelope;
    PieceHead piece;
};
static_assert(sizeof(PieceHeads) == 24);

constexpr Duration ask_how_far_every = std::chrono::milliseconds(100);

} // namespace

// ---- out

bool Networks::try_send_large(Pair& pair, Bytes bytes) noexcept {
    if (!pair.own.empty()) pump(pair);
    const bool was_sent =
        pair.plain && pair.rails.are_striped() ? send_striped(pair, bytes) : try_send_whole(pair, bytes);
    if (was_sent) pair.rails.on_taken(bytes.size());
    else pair.rails.on_refused();
    return was_sent;
}

/// As soon as a rail takes the first piece the message is sent: what they have no room for waits here.
bool Networks::send_striped(Pair& pair, Bytes bytes) {
    const std::uint64_t ahead = pair.striped.empty() ? 0 : pair.sent.bytes - pair.striped.front().sent_before;
    if (ahead != 0 && ahead + bytes.size() > std::max(stripes_.ahead_bytes_max, 2 * bytes.size()))
        return refuse(pair), false;
    const auto rails = static_cast<std::size_t>(std::max(std::popcount(rails_of(pair)), 1));
    const std::size_t part_max = std::min(stripes_.piece_bytes_max, message_bytes_max_ - sizeof(PieceHead));
    const std::size_t part = std::min(((bytes.size() + rails - 1) / rails + 7) & ~std::size_t{7}, part_max);
    PieceHeads heads{envelope(pair, Envelope::Kind::piece, pair.next), {static_cast<std::uint32_t>(bytes.size()), 0}};
    heads.envelope.asks = true;
    for (std::size_t offset = 0; offset < bytes.size(); offset += part) {
        heads.piece.offset = static_cast<std::uint32_t>(offset);
        const Bytes body = bytes.subspan(offset, std::min(part, bytes.size() - offset));
        if (pair.own.empty() && give_piece(pair, bytes_of(heads), body)) continue;
        if (offset == 0) return watch(pair), false; // they may have failed
        Letter letter(sizeof heads + body.size());
        Pieces(bytes_of(heads), body).copy_to(letter.data());
        keep_own(pair, std::move(letter));
    }
    ++pair.next;
    pair.striped.push_back({heads.envelope.sequence, pair.sent.bytes});
    ++counters_.striped;
    count_sent(pair, bytes.size());
    return true;
}

/// To the rail whose turn it is, or the next that has room.
bool Networks::give_piece(Pair& pair, Bytes head, Bytes body) {
    for (std::uint64_t left = rails_of(pair); left != 0;) {
        auto next = static_cast<std::size_t>(std::countr_zero(left));
        for (std::size_t i = next + 1; i < pair.ways.size() && i < 64; ++i)
            if ((left >> i & 1) != 0 && pair.rails.turn(i) < pair.rails.turn(next)) next = i;
        left &= ~(std::uint64_t{1} << next);
        Way& way = pair.ways[next];
        if (!way.link->channel->try_send(way.number, head, body)) continue;
        way.has_pieces = true;
        pair.rails.on_given(next, head.size() + body.size());
        return true;
    }
    return false;
}

bool Networks::is_rail(const Pair& pair, std::size_t index) const noexcept {
    const Way& way = pair.ways[index];
    return !way.is_relayed() && (index == pair.current || (may_use(way) && !way.doubted && !way.suspected));
}

/// A bit for each way.
std::uint64_t Networks::rails_of(const Pair& pair) const noexcept {
    std::uint64_t rails = 0;
    for (std::size_t i = 0; i < pair.ways.size() && i < 64; ++i)
        if (is_rail(pair, i)) rails |= std::uint64_t{1} << i;
    return rails;
}

void Networks::on_striped_arrived(Pair& pair, Sequence expected) noexcept {
    if (pair.striped.empty() || !is_before(pair.striped.front().sequence, expected)) return;
    while (!pair.striped.empty() && is_before(pair.striped.front().sequence, expected)) pair.striped.pop_front();
    look_ahead(pair);
    note_room(pair);
}

/// Whether smaller messages, too, have come so far ahead of one in pieces that its receiver may not take more.
void Networks::look_ahead(Pair& pair) noexcept {
    const std::uint64_t ahead = pair.striped.empty() ? 0 : pair.sent.bytes - pair.striped.front().sent_before;
    pair.held = ahead > std::max(stripes_.ahead_bytes_max, 2 * message_bytes_max_);
}

// ---- in

void Networks::take_piece(Pair& pair, const Envelope& head, pm::Message& message, bool& handed_out,
                          pm::Handler handler) {
    owe_arrived(pair);
    Joiner::Whole whole;
    auto outcome = Joiner::Outcome::duplicate;
    if (!has_come(pair, head.sequence))
        outcome = pair.joiner.add(head.sequence, message.bytes().subspan(head_bytes(head.hops)), whole);
    switch (outcome) {
    case Joiner::Outcome::waits: return;
    case Joiner::Outcome::duplicate: ++counters_.duplicates; return;
    case Joiner::Outcome::unsound: ++counters_.unsound; return;
    case Joiner::Outcome::complete: break;
    }
    Envelope whole_head = head;
    whole_head.kind = Envelope::Kind::message;
    whole_head.asks = true;
    whole_head.hops = 0;
    std::memcpy(whole.memory.get(), &whole_head, sizeof whole_head);
    std::byte* const memory = whole.memory.release();
    const auto token = reinterpret_cast<std::uintptr_t>(memory);
    pm::Message letter(pair.peer, Bytes(memory, whole.bytes), &whole.owner(), token);
    if (head.sequence == pair.expected) {
        take(pair, whole_head, letter, handed_out, handler);
    } else {
        ++counters_.early;
        pair.early.emplace(head.sequence, letter.keep());
    }
    if (!letter.was_kept()) whole.owner().release(token);
}

// ---- time

/// The rails but the current way, which consider() sees to.
void Networks::consider_rails(Pair& pair, Instant now) {
    for (std::size_t i = 0; i < pair.ways.size(); ++i) {
        Way& way = pair.ways[i];
        if (way.is_relayed()) continue;
        if (way.link->ways->all_arrived(way.number)) {
            way.has_pieces = false;
            if (may_use(way)) way.doubted = false;
            if (i != pair.current) way.suspected.reset();
        }
        if (i == pair.current || !way.has_pieces) continue;
        if (!may_use(way)) leave_rail(pair, i, "it is gone", now);
        else if (answers_elsewhere(pair, i, now)) leave_rail(pair, i, "no answer", now);
    }
    // The peer's word of it may have been lost with some way.
    const bool may_be_lost = pair.refused && !pair.striped.empty() && has_arrived(pair);
    if (may_be_lost && now - pair.asked_how_far >= ask_how_far_every) {
        pair.asked_how_far = now;
        note(pair, Envelope::Kind::how_far);
    }
    look_ahead(pair);
    set_plain(pair);
}

void Networks::leave_rail(Pair& pair, std::size_t index, const char* why, Instant now) {
    Way& way = pair.ways[index];
    tell(pair, way, why, pair.ways[pair.current].name, now);
    way.doubted = true;
    way.suspected.reset();
    collect_unarrived(pair, index);
    set_plain(pair);
    make_pending(pair);
}

void Networks::measure_rails(Pair& pair, Instant now) {
    bool are_clear = pair.own.empty();
    for (std::size_t i = 0; i < pair.ways.size(); ++i)
        are_clear = are_clear && (i == pair.current || !pair.ways[i].has_pieces);
    if (pair.is_lost || !pair.rails.on_time(now, rails_of(pair), are_clear)) return;
    const auto [single, striped] = pair.rails.rates();
    base::log_debug(
        "composite: large messages to node {}: {:.0f} MB/s by one network, {:.0f} by all that join it: they go {}",
        pair.peer, single / 1e6, striped / 1e6, pair.rails.are_striped() ? "in pieces" : "whole");
}

} // namespace kumi::device::composite
