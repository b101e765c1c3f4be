#include "kumi/reliable/endpoint.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/checksum.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

/// A longer time between two looks at the clock means that this process was stopped, or computed, and it counts as
/// this much: timers are never further apart than a second.
constexpr Duration awake_step_max = 1500ms;
/// A host that says so this often, for this long, is believed: nobody listens there.
constexpr unsigned refusals_needed = 3;
constexpr Duration refused_time = 300ms;
/// What one sendmsg(2) may carry, with room for what encryption adds to each packet.
constexpr std::size_t series_bytes_max = 62'900;
/// Selective acknowledgement in one packet: for 3,584 packets behind the first that is missing.
constexpr std::size_t ack_words_max = 56;
static_assert(sizeof(PacketHeader) + ack_words_max * 8 <= packet_bytes_min);
constexpr std::size_t idle_bytes_max = std::size_t{64} << 20;

std::size_t capacity_for(std::size_t bytes) noexcept { return std::size_t{1} << BlockPool::size_class_of(bytes); }

/// Two packets must fit into what the peer grants at any time.
std::uint32_t fitting(std::uint32_t packet_bytes, std::uint32_t credit_own_part) noexcept {
    return std::clamp((credit_own_part / 2 - weight_of(0)) & ~7u, packet_bytes_min, packet_bytes);
}

/// What one peer may have sent that is not read yet: even in the smallest packets no more of them than a window. While
/// readers keep messages a peer's packets are acknowledged but not read, so its window alone does not see to that.
std::uint32_t unread_weight_max(const EndpointOptions& options) noexcept {
    return options.window_packets_max * weight_of(sizeof(PacketHeader) + sizeof(RecordHeader));
}

constexpr std::size_t queue_bytes = std::size_t{1} << 19;

std::size_t queue_bytes_max(const EndpointOptions& options) noexcept {
    // A message that is copied lies in between its packets' headers.
    const std::size_t head_share = options.message_bytes_max / (packet_bytes_min - piece_head_bytes) + 1;
    return std::max(queue_bytes, 2 * capacity_for(options.message_bytes_max + head_share * piece_head_bytes));
}

} // namespace

const char* name_of(Gone reason) noexcept {
    constexpr std::array names{"there", "left", "refused", "silent", "restarted"};
    return names[static_cast<std::size_t>(reason)];
}

std::size_t Series::bytes() const noexcept {
    std::size_t all = 0;
    for (std::size_t i = 0; i < count; ++i) all += packets[i].bytes();
    return all;
}

Endpoint::Endpoint(const EndpointOptions& options)
    : options_(options), pool_(idle_bytes_max),
      own_part_(std::min(CreditPool::own_part(options.receive_bytes, options.nodes, packet_bytes_min), unread_weight_max(options))),
      credits_(options.receive_bytes, options.nodes, own_part_, unread_weight_max(options), options.first_sequence), peers_(options.nodes),
      ready_(options.nodes) {
    KUMI_ASSERT((options.window_packets_max & (options.window_packets_max - 1)) == 0);
    KUMI_ASSERT(options.window_packets_max <= ack_words_max * 64); // or else what arrived would be taken for lost
    timed_.reserve(options.nodes);
    open_.reserve(options.nodes);
    stalled_.reserve(options.nodes);
    checks_.reserve(options.nodes);
}

Introduction Endpoint::introduction() const noexcept {
    return {.incarnation = options_.incarnation, .credit_own_part = own_part_};
}

void Endpoint::introduce(Node peer, const Introduction& introduction) {
    const SenderOptions sending{.packet_bytes = fitting(introduction.packet_bytes, introduction.credit_own_part),
                                .window_packets_max = options_.window_packets_max,
                                .queue_bytes = queue_bytes,
                                .credit_own_part = introduction.credit_own_part,
                                .first_sequence = options_.first_sequence,
                                .hold_max = options_.hold_max};
    const ReceiverOptions receiving{.peer = peer,
                                    .window_packets_max = options_.window_packets_max,
                                    .message_bytes_max = options_.message_bytes_max,
                                    .held_bytes_max = capacity_for(options_.message_bytes_max),
                                    .aside_bytes_max = 2 * options_.receive_bytes,
                                    .first_sequence = options_.first_sequence,
                                    .ack_delay_max = options_.ack_delay_max};
    auto made = std::make_unique<Peer>(pool_, sending, receiving);
    made->incarnation = introduction.incarnation;
    made->transmission = options_.first_sequence + 1;
    made->heard_at = awake_;
    if (const auto& old = peers_[peer]) { // the lists that it is in
        made->ready = old->ready;
        made->timed = old->timed;
        made->open = old->open;
        made->stalled = old->stalled;
        old->receiver.clear();
        made->receiver.on_kept(old->receiver.held_bytes());
        credits_.reset(peer);
    }
    peers_[peer] = std::move(made);
}

std::size_t Endpoint::bytes_per_peer_max(const EndpointOptions& options) noexcept {
    return sizeof(Peer) + Sender::slots_bytes_max(options.window_packets_max) + options.window_packets_max * sizeof(Block*) +
           queue_bytes_max(options) + Sender::packed_bytes_most + capacity_for(options.message_bytes_max) + 2 * options.receive_bytes;
}

// ---- lists

void Endpoint::make_ready(Node peer) noexcept {
    if (std::exchange(peers_[peer]->ready, true)) return;
    ready_.push(peer);
}

void Endpoint::watch(Node peer, Instant deadline) noexcept {
    if (deadline == never) return;
    deadline_ = std::min(deadline_, deadline);
    if (!std::exchange(peers_[peer]->timed, true)) timed_.push_back(peer);
}

Instant Endpoint::deadline_of(Node node, Instant now) const noexcept {
    const Peer& peer = *peers_[node];
    const Instant ack = peer.receiver.ack_deadline();
    // What is ready already waits for the driver, not for the time.
    return std::min(peer.sender.deadline(now), peer.ready && ack <= now ? never : ack);
}

// ---- messages out

std::byte* Endpoint::try_reserve(Node to, std::size_t bytes) noexcept {
    KUMI_ASSERT(bytes <= options_.message_bytes_max);
    return is_gone(to) ? nullptr : peers_[to]->sender.try_reserve(bytes);
}

void Endpoint::commit(Node to, std::size_t bytes, Instant now) noexcept {
    Peer& peer = *peers_[to];
    if (is_gone(to)) return peer.sender.cancel();
    if (!peer.sender.waits_for_peer()) peer.heard_at = awake_;
    peer.sender.commit(bytes);
    after_commit(to, now);
}

void Endpoint::cancel(Node to) noexcept { peers_[to]->sender.cancel(); }

bool Endpoint::try_send(Node to, Bytes message, Instant now) noexcept {
    Peer& peer = *peers_[to];
    if (is_gone(to)) return false;
    if (!peer.sender.waits_for_peer()) peer.heard_at = awake_;
    const bool is_long = message.size() > peer.sender.append_bytes_max();
    if (!(is_long ? peer.sender.try_append_long(message) : peer.sender.try_append(message))) return false;
    after_commit(to, now);
    return true;
}

void Endpoint::after_commit(Node to, Instant now) noexcept {
    Peer& peer = *peers_[to];
    if (peer.sender.is_urgent(now)) peer.sender.close_open_packet();
    if (peer.sender.has_closed()) make_ready(to);
    if (peer.sender.has_open() && !std::exchange(peer.open, true)) open_.push_back(to);
}

void Endpoint::flush() noexcept {
    for (const Node node : open_) {
        Peer& peer = *peers_[node];
        peer.open = false;
        if (!peer.sender.has_open()) continue;
        peer.sender.close_open_packet();
        make_ready(node);
    }
    open_.clear();
}

/// The whole way of a small message when nothing else is under way: what try_send(), next_series() and on_sent() do
/// together, in one piece. A system call leaves the caches full of the system's own code, so every line that need not run
/// counts twice.
Bytes Endpoint::try_send_now(Node to, Bytes message, Instant now) noexcept {
    Peer& peer = *peers_[to];
    Sender& sender = peer.sender;
    Receiver& receiver = peer.receiver;
    const bool plain = peer.gone == Gone::no && !peer.ask && !receiver.has_aside();
    const bool has_credit = credits_.exposure(to) > own_part_ / 2; // else the peer is to be granted more
    if (!plain || !has_credit || message.size() > sender.append_bytes_max()) return {};
    const auto packet_bytes = static_cast<std::uint32_t>(sizeof(PacketHeader) + record_bytes(message.size()));
    std::byte* const packet = sender.send_alone(packet_bytes, peer.transmission, now);
    if (packet == nullptr) return {};
    peer.heard_at = awake_;
    peer.talked = true;
    ++peer.counters.packets_sent;
    peer.counters.bytes_sent += packet_bytes;

    PacketHeader header{.token = options_.token,
                        .checksum = 0,
                        .bytes = static_cast<std::uint16_t>(packet_bytes),
                        .flags = flag::data,
                        .ack_words = 0,
                        .source = options_.self,
                        .destination = to,
                        .source_incarnation = options_.incarnation,
                        .destination_incarnation = peer.incarnation,
                        .sequence = sender.last_sequence(),
                        .expected = 0,
                        .credit = credits_.line(to),
                        .transmission = peer.transmission++,
                        .latest = 0,
                        .held_us = 0};
    receiver.acknowledge(header, false, now);
    std::memcpy(packet, &header, sizeof header);
    std::byte* const record_at = packet + sizeof header;
    const RecordHeader record{static_cast<std::uint32_t>(message.size()), whole_message};
    std::memcpy(record_at, &record, sizeof record);
    if (message.size() % 8 != 0) std::memset(packet + packet_bytes - 8, 0, 8);
    copy_bytes(record_at + sizeof record, message);
    if (options_.checked != Checked::nothing) {
        const std::uint32_t sum = base::checksum(Bytes(packet, packet_bytes));
        std::memcpy(packet + offsetof(PacketHeader, checksum), &sum, sizeof sum);
    }
    watch(to, sender.timeout_deadline());
    return {packet, packet_bytes};
}

void Endpoint::on_not_sent(Node to) noexcept {
    peers_[to]->sender.send_again();
    make_ready(to);
}

// ---- packets in

std::size_t Endpoint::on_packet(Bytes datagram, Instant now) noexcept {
    KUMI_ASSERT(!reading_.active);
    Bytes packet = datagram;
    PacketHeader header;
    Drop cause;
    const auto drop = [&](Drop why) { return drops_.count(why), datagram.size(); };
    if (!parse(packet, options_.token, options_.checked, header, cause)) return drop(cause);
    if (header.destination != options_.self || header.source >= options_.nodes) return drop(Drop::misaddressed);
    const Node node = header.source;
    Peer& peer = *peers_[node];
    if (header.destination_incarnation != options_.incarnation) return drop(Drop::stale);
    if (header.source_incarnation != peer.incarnation) {
        if (!is_gone(node) && is_before(peer.incarnation, header.source_incarnation)) lose(node, Gone::restarted);
        return drop(Drop::stale);
    }
    if (is_gone(node)) return drop(Drop::late);

    const bool is_data = (header.flags & flag::data) != 0;
    const Bytes rest = packet.subspan(sizeof header);
    if (!peer.sender.on_ack(header, is_data ? Bytes{} : rest, peer.transmission, now)) return drop(Drop::malformed);
    peer.heard_at = awake_;
    peer.refusals = 0;
    peer.receiver.on_packet(header, now);
    if ((header.flags & flag::bye) != 0) return lose(node, Gone::left), packet.size();
    if (is_data) {
        switch (peer.receiver.on_data(header, rest, now)) {
        case Receiver::Verdict::next: begin_reading(node, rest, nullptr, weight_of(header.bytes), now); break;
        case Receiver::Verdict::put_aside: read_on(node, now); break; // notes that it is stalled, if it is
        case Receiver::Verdict::beyond_window: drops_.count(Drop::beyond_window); break;
        case Receiver::Verdict::malformed: drops_.count(Drop::malformed); break;
        case Receiver::Verdict::duplicate: break;
        }
    }
    if (!std::exchange(peer.touched, true)) touched_.push_back(node);
    return packet.size();
}

/// Draws the consequences of packets: once for all that came in one go.
void Endpoint::settle(Instant now) noexcept {
    for (const Node node : touched_) {
        Peer& peer = *peers_[node];
        peer.touched = false;
        if (is_gone(node)) continue;
        if (peer.sender.has_repairs() || (peer.sender.has_closed() && peer.sender.may_send(now))) make_ready(node);
        acknowledge_if_due(node, now);
        watch(node, deadline_of(node, now));
    }
    touched_.clear();
}

void Endpoint::acknowledge_if_due(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (peer.receiver.ack_deadline() <= now) return make_ready(node);
    if (peer.receiver.unacknowledged_weight() < own_part_ / 8) return; // cannot be much; the most common case
    // The peer may be left with little: a quarter of what it can have now is worth a packet.
    const std::uint32_t growth = credits_.growth(node);
    const bool worth_telling = growth != 0 && growth >= (growth + credits_.exposure(node)) / 4;
    if (worth_telling || peer.receiver.unacknowledged_weight() >= credits_.share() / 4) peer.receiver.acknowledge_by(now);
    if (peer.receiver.ack_deadline() <= now) make_ready(node);
}

void Endpoint::begin_reading(Node peer, Bytes records, Block* block, std::uint32_t weight, Instant now) noexcept {
    reading_ = {peer, records, block, true};
    credits_.on_consumed(peer, weight, now);
}

void Endpoint::end_reading() noexcept {
    reading_.active = false;
    if (reading_.block != nullptr) pool_.give_back(std::exchange(reading_.block, nullptr));
}

/// Goes on with what came before its turn, if it is its turn now.
bool Endpoint::read_on(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (reading_.active) return true;
    Block* const block = peer.receiver.take_aside();
    if (block == nullptr) {
        if (peer.receiver.is_stalled() && !std::exchange(peer.stalled, true)) stalled_.push_back(node);
        return false;
    }
    begin_reading(node, Bytes(block->data(), block->bytes), block, weight_of(block->bytes + sizeof(PacketHeader)), now);
    return true;
}

bool Endpoint::read_next(Arrival& arrival, Instant now) noexcept {
    collect();
    while (reading_.active || read_stalled(now)) {
        const Node node = reading_.peer;
        Receiver& receiver = peers_[node]->receiver;
        if (receiver.next_message(reading_.records, arrival)) {
            // The last of its packet, and nothing waits behind it: that is all, and nobody need ask again.
            if (reading_.records.empty() && reading_.block == nullptr && !receiver.has_aside()) reading_.active = false;
            return true;
        }
        end_reading();
        if (read_on(node, now)) continue;
        if (is_gone(node)) {
            forget_unreadable(node);
            continue;
        }
        if (!std::exchange(peers_[node]->touched, true)) touched_.push_back(node);
    }
    return false;
}

/// Goes on with somebody for whose message there was no room, if there is now.
bool Endpoint::read_stalled(Instant now) noexcept {
    for (std::size_t i = 0; i < stalled_.size();) {
        const Node node = stalled_[i];
        const bool reads = read_on(node, now);
        if (peers_[node]->receiver.is_stalled()) {
            ++i;
            continue;
        }
        peers_[node]->stalled = false;
        stalled_.erase(stalled_.begin() + static_cast<std::ptrdiff_t>(i));
        if (reads) return true;
    }
    return false;
}

void Endpoint::collect() noexcept {
    for (Block* block = pool_.collect(); block != nullptr;) {
        Block* const next = block->next;
        peers_[block->node]->receiver.on_released(*block);
        pool_.give_back(block);
        block = next;
    }
}

// ---- packets out

/// Writes everything into `header` that is not about the packet's content.
void Endpoint::address(Node node, PacketHeader& header, bool tells_gaps, Instant now) noexcept {
    Peer& peer = *peers_[node];
    header.token = options_.token;
    header.ack_words = 0;
    header.source = options_.self;
    header.destination = node;
    header.source_incarnation = options_.incarnation;
    header.destination_incarnation = peer.incarnation;
    header.credit = credits_.grant(node);
    peer.receiver.acknowledge(header, tells_gaps, now);
}

/// Completes the header, and puts it and the checksum in front of the packet.
void Endpoint::finish(const Peer& peer, PacketHeader& header, OutPacket& packet, std::size_t index) noexcept {
    header.transmission = peer.transmission + static_cast<Sequence>(index);
    header.checksum = 0;
    const bool head_only = options_.checked == Checked::heads && packet.is_piece;
    if (head_only) header.flags |= flag::head_checked;
    std::memcpy(packet.head, &header, sizeof header);
    if (options_.checked == Checked::nothing) return;
    const std::uint32_t sum = head_only ? base::checksum(Bytes(packet.head, summed_head_bytes))
                                        : base::checksum(Bytes(packet.head, packet.head_bytes), packet.body);
    std::memcpy(packet.head + offsetof(PacketHeader, checksum), &sum, sizeof sum);
}

bool Endpoint::next_series(Series& series, Instant now) noexcept {
    settle(now);
    while (!ready_.empty()) {
        const Node node = ready_.pop();
        Peer& peer = *peers_[node];
        peer.ready = false;
        if (is_gone(node)) continue;
        const bool ack_due = peer.receiver.ack_deadline() <= now;
        const bool gap_due = ack_due && peer.receiver.has_gap();
        if (!gap_due && fill_series(node, series, now)) {
            if (peer.sender.has_more_after_prepared() || peer.ask) make_ready(node); // at the end of the line
            return true;
        }
        if (ack_due || peer.ask) {
            fill_bare(node, series, now);
            if (peer.sender.has_closed() || peer.sender.has_repairs()) make_ready(node);
            return true;
        }
        watch(node, deadline_of(node, now));
    }
    return false;
}

bool Endpoint::fill_series(Node node, Series& series, Instant now) noexcept {
    Peer& peer = *peers_[node];
    std::size_t room = packet_bytes_max;
    std::size_t left = series_bytes_max;
    PacketHeader header;
    series.to = node;
    series.count = 0;
    series.again = peer.sender.has_repairs();
    peer.sender.forget_prepared();
    while (series.count < Sender::series_max) {
        const std::size_t i = series.count;
        if (!peer.sender.next_packet(i == 0 ? room : std::min(room, left), now, header, series.packets[i], series.heads[i])) break;
        if (i == 0) address(node, header, false, now);
        finish(peer, header, series.packets[i], i);
        const std::size_t bytes = series.packets[i].bytes();
        ++series.count;
        left -= std::min(left, bytes);
        if (i != 0 && bytes < room) break; // smaller than the first: the last
        room = bytes;
    }
    if (series.count == 0) return false;
    if (peer.sender.is_stuck_after_prepared(now)) {
        header.flags |= flag::please;
        finish(peer, header, series.packets[series.count - 1], series.count - 1);
    }
    return true;
}

void Endpoint::fill_bare(Node node, Series& series, Instant now) noexcept {
    Peer& peer = *peers_[node];
    PacketHeader header{};
    static_assert(sizeof series.heads >= packet_bytes_min);
    std::byte* const memory = series.heads[0];
    const std::size_t words = peer.receiver.write_words(memory + sizeof header, ack_words_max);
    address(node, header, true, now);
    header.ack_words = static_cast<std::uint8_t>(words);
    header.bytes = static_cast<std::uint16_t>(sizeof header + words * 8);
    if (std::exchange(peer.ask, false)) header.flags |= flag::please;
    series.to = node;
    series.count = 1;
    series.again = false;
    series.packets[0] = {memory, header.bytes, {}, false};
    peer.sender.forget_prepared();
    finish(peer, header, series.packets[0], 0);
}

void Endpoint::on_sent(const Series& series, std::size_t count, bool in_burst, Instant now) noexcept {
    Peer& peer = *peers_[series.to];
    if (count == 0) {
        PacketHeader header;
        std::memcpy(&header, series.packets[0].head, sizeof header);
        if ((header.flags & (flag::data | flag::please)) == flag::please) peer.ask = true;
        peer.sender.forget_prepared();
        if (is_gone(series.to)) return;
        peer.receiver.acknowledge_by(now);
        make_ready(series.to);
        return;
    }
    peer.talked = true;
    peer.counters.packets_sent += count;
    for (std::size_t i = 0; i < count; ++i) peer.counters.bytes_sent += series.packets[i].bytes();
    if (count < series.count) make_ready(series.to);
    if (peer.sender.has_prepared()) peer.sender.on_sent(count, peer.transmission, in_burst, now);
    else ++peer.counters.bare_acks_sent;
    peer.transmission += static_cast<Sequence>(count);
    watch(series.to, deadline_of(series.to, now));
}

bool Endpoint::next_farewell(Series& series, bool more) noexcept {
    const unsigned round = more ? 1 : 2;
    for (Node node = 0; node < options_.nodes; ++node) {
        Peer& peer = *peers_[node];
        if (is_gone(node) || !peer.talked || peer.farewells >= round) continue;
        peer.farewells = round;
        fill_bare(node, series, last_time_);
        PacketHeader header;
        std::memcpy(&header, series.packets[0].head, sizeof header);
        header.flags |= flag::bye;
        finish(peer, header, series.packets[0], 0);
        return true;
    }
    return false;
}

// ---- time and fate

void Endpoint::on_time(Instant now) noexcept {
    if (last_time_ != Instant{}) awake_ += std::min(now - last_time_, awake_step_max);
    last_time_ = now;
    settle(now);
    if (now < deadline_) return;
    deadline_ = never;
    std::erase_if(timed_, [&](Node node) {
        if (!is_gone(node)) on_peer_time(node, now);
        const Instant next = is_gone(node) ? never : deadline_of(node, now);
        deadline_ = std::min(deadline_, next);
        return next == never ? (peers_[node]->timed = false, true) : false;
    });
}

Instant Endpoint::next_ack_deadline() const noexcept {
    Instant next = never;
    for (const Node node : timed_)
        if (!is_gone(node)) next = std::min(next, peers_[node]->receiver.ack_deadline());
    return next;
}

void Endpoint::on_peer_time(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (peer.sender.on_time(now)) peer.ask = true;
    if (peer.ask || peer.receiver.ack_deadline() <= now || peer.sender.may_send(now)) make_ready(node);
    if (peer.sender.waits_for_peer()) check_life(node);
}

void Endpoint::check_life(Node node) noexcept {
    Peer& peer = *peers_[node];
    if (options_.silence_max == Duration{0}) return;
    const Duration silent = awake_ - peer.heard_at;
    if (silent >= options_.silence_max) return lose(node, Gone::silent);
    if (silent < options_.silence_max / 2 || awake_ - peer.checked_at < options_.silence_max / 16) return;
    peer.checked_at = awake_;
    if (std::find(checks_.begin(), checks_.end(), node) == checks_.end()) checks_.push_back(node);
}

std::optional<Node> Endpoint::next_host_check() noexcept {
    if (checks_.empty()) return std::nullopt;
    const Node node = checks_.back();
    checks_.pop_back();
    return node;
}

void Endpoint::on_host_alive(Node node) noexcept { peers_[node]->heard_at = awake_; }

void Endpoint::on_refused(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (is_gone(node)) return;
    if (peer.refusals++ == 0) peer.refused_at = now;
    if (peer.refusals >= refusals_needed && now - peer.refused_at >= refused_time) lose(node, Gone::refused);
}

void Endpoint::lose(Node node, Gone reason) noexcept {
    Peer& peer = *peers_[node];
    peer.gone = reason;
    ++fates_;
    peer.sender.clear();
    peer.receiver.stop_acknowledging();
    forget_unreadable(node);
}

/// Of a peer that is gone, what lies behind a gap will never be read.
void Endpoint::forget_unreadable(Node node) noexcept {
    Receiver& receiver = peers_[node]->receiver;
    const bool is_read = reading_.active && reading_.peer == node;
    if (!is_read && !receiver.is_stalled()) receiver.clear();
}

void Endpoint::set_packet_bytes(Node node, std::uint32_t bytes) noexcept {
    Sender& sender = peers_[node]->sender;
    sender.set_packet_bytes(fitting(bytes, sender.credit_own_part()));
}

bool Endpoint::all_arrived() const noexcept {
    return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->gone != Gone::no || peer->sender.idle(); });
}

} // namespace kumi::reliable
