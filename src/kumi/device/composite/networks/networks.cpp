// Messages, out and in. Those in pieces are in stripes.cpp, those of others in paths.cpp; when ways are left and taken
// is in failover.cpp.

#include "kumi/device/composite/networks/networks.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <fmt/format.h>
#include <limits>

namespace kumi::device::composite {
Networks::Networks(Node self, std::vector<NetworkLink> links, const std::vector<std::vector<PlannedWay>>& ways_to,
                   const StripeOptions& stripes)
    : self_(self), stripes_(stripes), message_bytes_max_(links.empty() ? 0 : std::numeric_limits<std::size_t>::max()),
      pairs_(ways_to.size()) {
    for (NetworkLink& link : links) {
        message_bytes_max_ = std::min(message_bytes_max_, link.channel->traits().message_bytes_max - head_bytes_max);
        links_.push_back(std::make_unique<Link>(std::move(link), static_cast<std::uint32_t>(links_.size())));
    }
    const std::size_t ahead_bytes = std::max(stripes.ahead_bytes_max, 2 * message_bytes_max_);
    for (Node to = 0; to < pairs_.size(); ++to) {
        Pair& pair = pairs_[to];
        pair.peer = to;
        for (const PlannedWay& planned : ways_to[to]) {
            KUMI_ASSERT(pair.ways.empty() || !pair.ways.back().is_relayed());
            Link* const link = planned.is_relayed ? nullptr : links_[planned.link].get();
            pair.ways.push_back({.link = link,
                                 .number = planned.number,
                                 .path = planned.path,
                                 .name = link != nullptr ? link->name : "other nodes"});
            if (!planned.is_silent) continue;
            pair.ways.back().deaf = pair.ways.back().doubted = true; // as one that the peer does not hear any more
            // it does not count when it is asked whether the peer is lost
            pair.ways.back().unusable_since = Instant{};
        }
        const auto answers = std::find_if(pair.ways.begin(), pair.ways.end(), [](const Way& way) { return !way.deaf; });
        if (answers != pair.ways.begin() && answers != pair.ways.end()) {
            pair.current = static_cast<std::size_t>(answers - pair.ways.begin());
            watch(pair);
        }
        if (!pair.ways.empty() && pair.ways.back().is_relayed() && !pair.ways.back().path.empty()) {
            pair.shortest = pair.ways.back().path.size();
            take_path(pair, pair.ways.back().path, false);
        }
        KUMI_ASSERT(pair.ways.size() <= 255);
        pair.rails = Rails(pair.ways.size(), stripes.always);
        pair.joiner = Joiner(message_bytes_max_, 2 * ahead_bytes);
        set_plain(pair);
    }
}

Envelope Networks::envelope(const Pair& pair, Envelope::Kind kind, Sequence sequence) const noexcept {
    return {
        .sequence = sequence, .source = self_, .destination = pair.peer, .kind = kind, .asks = 0, .hops = 0, .at = 0};
}

/// Whom a message is given to that goes that way.
std::optional<Networks::Outlet> Networks::outlet(const Pair& pair, std::size_t index) const noexcept {
    const Way& way = pair.ways[index];
    return way.is_relayed() ? outlet_by(way.path) : Outlet{way.link->channel, way.number};
}

/// Nothing, if no network joins this node with the first on that path.
std::optional<Networks::Outlet> Networks::outlet_by(const Path& path) const noexcept {
    if (path.empty()) return std::nullopt;
    const Pair& first = pairs_[path.front()];
    if (first.ways.empty() || is_relayed(first) || first.next_way || first.is_lost) return std::nullopt;
    return Outlet{first.ways[first.current].link->channel, first.ways[first.current].number, &path};
}

/// `letter`: an envelope without a path, and what is in it.
bool Networks::give(const Outlet& out, Bytes letter) noexcept {
    if (out.path == nullptr) return out.channel->try_send(out.number, letter);
    std::array<std::byte, head_bytes_max> head;
    const std::size_t bytes = write_head(head.data(), head_of(letter), *out.path);
    return out.channel->try_send(out.number, Bytes(head).first(bytes), letter.subspan(sizeof(Envelope)));
}

void Networks::watch(Pair& pair) noexcept {
    if (std::exchange(pair.watched, true)) return;
    if (watched_.empty()) ticked_ = now_;
    watched_.push_back(pair.peer);
}

// ---- out

bool Networks::try_send(Node to, Bytes bytes) noexcept {
    Pair& pair = pairs_[to];
    if (pair.reserved) return pair.missed = true, false;
    if (bytes.size() >= stripes_.message_bytes_min) [[unlikely]] return try_send_large(pair, bytes);
    return try_send_whole(pair, bytes);
}

bool Networks::try_send(Node to, Bytes head, Bytes body) noexcept {
    Pair& pair = pairs_[to];
    if (pair.reserved) return pair.missed = true, false;
    std::array<std::byte, sizeof(Envelope) + 256> heads; // most are small; devices take two pieces, and these are three
    if (pair.plain && head.size() <= heads.size() - sizeof(Envelope)) [[likely]] {
        const Way& way = pair.ways[pair.current];
        const Envelope first = envelope(pair, Envelope::Kind::message, pair.next);
        Pieces(bytes_of(first), head).copy_to(heads.data());
        if (way.link->channel->try_send(way.number, Bytes(heads).first(sizeof first + head.size()), body)) {
            ++pair.next;
            count_sent(pair, head.size() + body.size());
            return true;
        }
        watch(pair); // it may have failed
        if (!is_contended(pair)) return false;
    }
    const pm::SendSlot slot = try_reserve(to, head.size() + body.size());
    if (!slot) return false;
    Pieces(head, body).copy_to(slot.bytes().data());
    commit(slot);
    return true;
}

bool Networks::try_send_whole(Pair& pair, Bytes bytes) noexcept {
    if (pair.plain) [[likely]] {
        const Way& way = pair.ways[pair.current];
        const Envelope head = envelope(pair, Envelope::Kind::message, pair.next);
        if (way.link->channel->try_send(way.number, bytes_of(head), bytes)) {
            ++pair.next;
            count_sent(pair, bytes.size());
            return true;
        }
        watch(pair); // it may have failed
        if (!is_contended(pair)) return false;
    }
    const pm::SendSlot slot = try_reserve(pair.peer, bytes.size());
    if (!slot) return false;
    copy_bytes(slot.bytes().data(), bytes);
    commit(slot);
    return true;
}

pm::SendSlot Networks::try_reserve(Node to, std::size_t bytes) noexcept {
    Pair& pair = pairs_[to];
    if (pair.reserved) return pair.missed = true, pm::SendSlot{};
    if (!pair.own.empty()) pump(pair);
    pair.reserved_way = pair.current;
    if (pair.plain) {
        const Way& way = pair.ways[pair.current];
        if (const pm::SendSlot slot = way.link->channel->try_reserve(way.number, sizeof(Envelope) + bytes)) {
            pair.reserved = true;
            pair.reserved_here = false;
            return {to, slot.bytes().subspan(sizeof(Envelope)), slot.token()};
        }
        watch(pair); // it may have failed
        if (!is_contended(pair)) return {};
    }
    const bool may_wait_here = is_relayed(pair) || (is_contended(pair) && !pair.held);
    const bool has_room = pair.own.empty() || (is_relayed(pair) && pair.own.bytes() + bytes <= relay_window_bytes);
    if (pair.next_way || !may_wait_here || !has_room || pair.is_lost) return refuse(pair), pm::SendSlot{};
    try {
        pair.reserved_letter.resize(sizeof(Envelope) + bytes);
    } catch (const std::exception&) { // no memory
        return refuse(pair), pm::SendSlot{};
    }
    pair.reserved = pair.reserved_here = true;
    return {to, MutableBytes(pair.reserved_letter).subspan(sizeof(Envelope))};
}

bool Networks::commit(const pm::SendSlot& slot) noexcept {
    Pair& pair = pairs_[slot.to()];
    const Way& way = pair.ways[pair.reserved_way];
    const std::size_t bytes = slot.bytes().size();
    Envelope head = envelope(pair, Envelope::Kind::message, pair.next++);
    head.asks = is_relayed(pair);
    pair.reserved = false;
    if (pair.reserved_here) {
        std::memcpy(pair.reserved_letter.data(), &head, sizeof head);
        keep_own(pair, std::exchange(pair.reserved_letter, {}));
    } else {
        const MutableBytes whole(slot.bytes().data() - sizeof head, bytes + sizeof head);
        std::memcpy(whole.data(), &head, sizeof head);
        const pm::SendSlot own(way.number, whole, slot.token());
        if (pair.reserved_way == pair.current && pair.own.empty() && !way.link->channel->lost(way.number)) {
            way.link->channel->commit(own);
        } else { // the way has failed since
            keep_own(pair, Letter(whole.begin(), whole.end()));
            way.link->channel->cancel(own);
        }
    }
    count_sent(pair, bytes);
    if (!pair.own.empty()) pump(pair);
    return std::exchange(pair.missed, false);
}

bool Networks::cancel(const pm::SendSlot& slot) noexcept {
    Pair& pair = pairs_[slot.to()];
    const Way& way = pair.ways[pair.reserved_way];
    pair.reserved = false;
    if (pair.reserved_here) pair.reserved_letter.clear();
    else
        way.link->channel->cancel(
            {way.number, MutableBytes(slot.bytes().data() - sizeof(Envelope), slot.bytes().size() + sizeof(Envelope)),
             slot.token()});
    return std::exchange(pair.missed, false);
}

void Networks::keep_own(Pair& pair, Letter letter) {
    pair.own.push(std::move(letter));
    set_plain(pair);
    make_pending(pair);
}

/// What a later one makes void is not sent.
void Networks::note(Pair& pair, Envelope::Kind kind, Sequence sequence) {
    const auto is_hearing = [](Envelope::Kind one) {
        return one == Envelope::Kind::deaf || one == Envelope::Kind::hears;
    };
    std::erase_if(pair.notes, [&](const Envelope& one) {
        return one.sequence == sequence && (one.kind == kind || (is_hearing(one.kind) && is_hearing(kind)));
    });
    pair.notes.push_back(envelope(pair, kind, sequence));
    make_pending(pair);
}

void Networks::keep_passing(Pair& pair, Letter letter) {
    pair.passing_bytes[ends_of(head_of(letter))] += letter.size();
    pair.passing.push_back(std::move(letter));
    watch(pair);
    make_pending(pair);
}

void Networks::pop_passing(Pair& pair) {
    const auto held = pair.passing_bytes.find(ends_of(head_of(pair.passing.front())));
    held->second -= pair.passing.front().size();
    if (held->second == 0) pair.passing_bytes.erase(held);
    pair.passing.pop_front();
}

/// Because of what is in between: it will be told when there is room.
void Networks::refuse(Pair& pair) noexcept {
    pair.refused = true;
    if (!pair.striped.empty()) watch(pair);
}

void Networks::owe_arrived(Pair& pair) {
    pair.owes_arrived = true;
    make_pending(pair);
}

void Networks::make_pending(Pair& pair) {
    if (!std::exchange(pair.pending, true)) pending_.push_back(pair.peer);
}

/// Something is to be sent as soon as it can be.
bool Networks::waits(const Pair& pair) const noexcept {
    const bool has_own = is_relayed(pair) ? pair.own.next() != nullptr : !pair.own.empty();
    const auto owes_pong = [](const Way& way) { return way.owes_pong.has_value(); };
    return has_own || !pair.passing.empty() || !pair.notes.empty() || !pair.urgent.empty() || pair.owes_arrived ||
           pair.next_way || std::any_of(pair.ways.begin(), pair.ways.end(), owes_pong);
}

void Networks::pump_pending(Instant now) {
    now_ = now;
    // Several may wait for room on one channel: another is the first each time, and what is said about ways goes before
    // all messages.
    std::rotate(pending_.begin(), pending_.begin() + 1, pending_.end());
    for (const Node node : pending_) pump_words(pairs_[node]);
    for (std::size_t i = 0; i < pending_.size(); ++i) { // others may be added meanwhile
        Pair& pair = pairs_[pending_[i]];
        pump(pair);
        if (pair.next_way) try_better(pair, now);
    }
    std::erase_if(pending_,
                  [&](Node node) { return waits(pairs_[node]) ? false : (pairs_[node].pending = false, true); });
}

/// Sends what waits, as far as the way takes it: messages of this node and those that it passes on, each first in
/// turns.
void Networks::pump(Pair& pair) {
    pump_words(pair);
    if (is_relayed(pair)) tell_broken(pair);
    const auto out = outlet(pair, pair.current);
    if (!out) return;
    if (std::exchange(pair.passes_next, !pair.passes_next)) {
        pump_passing(pair, *out);
        pump_own(pair, *out);
    } else {
        pump_own(pair, *out);
        pump_passing(pair, *out);
    }
}

void Networks::pump_passing(Pair& pair, Outlet out) {
    for (; !pair.passing.empty(); pop_passing(pair))
        if (!out.channel->try_send(out.number, pair.passing.front())) return;
}

/// Sends what this node says about ways and arrivals.
void Networks::pump_words(Pair& pair) {
    pump_pongs(pair);
    if (!pair.urgent.empty()) pump_urgent(pair);
    const auto out = outlet(pair, pair.current);
    // A message that was passed on to here tells of a path back, and that the peer may hear nothing otherwise.
    const auto back = outlet_by(pair.way_back);
    if (pair.owes_arrived && send_control(pair, back ? back : out, Envelope::Kind::arrived, pair.expected))
        pair.owes_arrived = false;
    while (out && !pair.notes.empty() && give(*out, bytes_of(pair.notes.front()))) pair.notes.erase(pair.notes.begin());
}

void Networks::pump_own(Pair& pair, Outlet out) {
    if (is_relayed(pair)) {
        for (const Letter* letter = pair.own.next(); letter != nullptr && give(out, *letter); letter = pair.own.next())
            pair.own.on_given(now_);
        return;
    }
    for (; !pair.own.empty(); pair.own.pop_front()) { // the device keeps it now
        const Bytes letter = pair.own.front();
        const bool is_piece = head_of(letter).kind == Envelope::Kind::piece;
        if (!(is_piece ? give_piece(pair, letter, {}) : out.channel->try_send(out.number, letter))) break;
    }
    set_plain(pair);
}

bool Networks::send_control(const Pair& pair, const std::optional<Outlet>& out, Envelope::Kind kind,
                            Sequence sequence) const noexcept {
    return out && give(*out, bytes_of(envelope(pair, kind, sequence)));
}

// ---- in

bool Networks::on_message(std::uint32_t link, pm::Message& message, pm::Handler handler, Instant now) {
    now_ = now;
    Envelope head;
    if (!read_value(message.bytes(), head)) return false; // a greeting of the probe that comes late
    if (!is_sound(head, message.bytes())) return ++counters_.unsound, false;
    const Inlet from{*links_[link], message.source()};
    if (head.kind == Envelope::Kind::seek) return on_seek(head, message.bytes(), from), false;
    if (head.destination != self_) return pass_on(head, message.bytes(), from), false;
    Pair& pair = pairs_[head.source];
    bool handed_out = false;
    if (head.hops != 0 || !pair.way_back.empty()) [[unlikely]] note_way_back(pair, head, message.bytes());
    switch (head.kind) {
    case Envelope::Kind::message: take(pair, head, message, handed_out, handler); break;
    case Envelope::Kind::piece: take_piece(pair, head, message, handed_out, handler); break;
    case Envelope::Kind::ping: on_ping(pair, head, message.bytes(), from); break;
    case Envelope::Kind::pong: on_pong(pair, head, message.bytes(), now); break;
    case Envelope::Kind::arrived: on_arrived(pair, head.sequence, now); break;
    case Envelope::Kind::how_far: owe_arrived(pair); break;
    case Envelope::Kind::deaf: on_deaf(pair, head.sequence, true, now); break;
    case Envelope::Kind::hears: on_deaf(pair, head.sequence, false, now); break;
    case Envelope::Kind::left:
        if (head.sequence < pairs_.size() && !pairs_[head.sequence].ways.empty()) lose(pairs_[head.sequence]);
        break;
    case Envelope::Kind::leaving: pair.wants_done = true; break;
    case Envelope::Kind::done: pair.is_done = true; break;
    case Envelope::Kind::found: on_found(pair, head, message.bytes(), now); break;
    case Envelope::Kind::broken: on_broken(head.source, head.sequence, now); break;
    case Envelope::Kind::owes: on_owes(head.sequence, now); break;
    case Envelope::Kind::seek: break;
    }
    return handed_out;
}

void Networks::take(Pair& pair, const Envelope& head, pm::Message& message, bool& handed_out, pm::Handler handler) {
    if (head.asks != 0) [[unlikely]] owe_arrived(pair);
    if (head.sequence != pair.expected) [[unlikely]] {
        if (has_come(pair, head.sequence)) {
            ++counters_.duplicates;
        } else { // a copy: what the device holds would keep out those that it waits for
            ++counters_.early;
            pair.early.emplace(head.sequence, pm::KeptMessage(pair.peer, message.bytes()));
        }
        return;
    }
    ++pair.expected;
    pm::Message known(message, pair.peer, message.bytes().subspan(head_bytes(head.hops)));
    handler(known);
    if (known.was_kept()) message.note_kept();
    handed_out = true;
    if (!pair.early.empty() && !std::exchange(pair.has_turn, true)) [[unlikely]]
        early_.push_back(pair.peer);
}

std::size_t Networks::hand_out_early(pm::Handler handler, std::size_t messages_max) {
    std::size_t handed_out = 0;
    while (!early_.empty() && handed_out < messages_max) {
        Pair& pair = pairs_[early_.back()];
        // What has come by another way since is not needed any more.
        while (!pair.early.empty() && is_before(pair.early.begin()->first, pair.expected))
            pair.early.erase(pair.early.begin());
        auto next = pair.early.find(pair.expected);
        if (next == pair.early.end()) {
            pair.has_turn = false;
            early_.pop_back();
            continue;
        }
        const pm::KeptMessage kept = std::move(next->second);
        pair.early.erase(next);
        ++pair.expected;
        const Envelope head = head_of(kept.bytes());
        if (head.asks != 0) owe_arrived(pair); // the answer was given before its turn
        ++handed_out;
        pm::Message message(pair.peer, kept.bytes().subspan(head_bytes(head.hops)));
        handler(message);
    }
    return handed_out;
}

void Networks::on_arrived(Pair& pair, Sequence expected, Instant now) {
    if (pair.own.on_arrived(expected, now)) {
        note_room(pair);
        if (waits(pair)) make_pending(pair);
    }
    on_striped_arrived(pair, expected);
    set_plain(pair);
}

// ---- state

std::string_view Networks::carrier(Node to) const noexcept { return pairs_[to].ways[pairs_[to].current].name; }

int Networks::link_to(Node to) const noexcept {
    const Pair* pair = &pairs_[to];
    if (is_relayed(*pair)) {
        const Path& path = pair->ways[pair->current].path;
        if (path.empty()) return -1;
        pair = &pairs_[path.front()];
    }
    return pair->ways.empty() || is_relayed(*pair) ? -1 : static_cast<int>(pair->ways[pair->current].link->index);
}

} // namespace kumi::device::composite
