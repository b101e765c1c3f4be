// Endpoint: outgoing packets.

#include "kumi/reliable/endpoint/endpoint.hpp"

#include "kumi/base/assert.hpp"
#include "kumi/base/data/checksum.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kumi::reliable {
namespace {

/// Content of probes.
alignas(64) std::byte zeros[packet_bytes_max];

} // namespace

/// Sets all fields of `header` that are not about the packet's content.
void Endpoint::address(Node node, PacketHeader& header, std::uint32_t credit, bool tells_gaps, Instant now) noexcept {
    Peer& peer = *peers_[node];
    header.token = options_.token;
    header.ack_words = 0;
    header.source = options_.self;
    header.destination = node;
    header.source_incarnation = options_.incarnation;
    header.destination_incarnation = peer.incarnation;
    header.credit = credit;
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
        if (is_gone(node)) {
            if (!std::exchange(peer.owes_farewell, false)) continue;
            fill_farewell(node, series, now);
            return true;
        }
        if (peer.path.next_probe() <= now) [[unlikely]] {
            fill_probe(node, series, now);
            make_ready(node);
            return true;
        }
        if (peer.owes_report) [[unlikely]] {
            peer.owes_report = false;
            if (!reports_.empty()) {
                fill_report(node, series, now);
                make_ready(node);
                return true;
            }
        }
        const bool ack_due = peer.receiver.ack_deadline() <= now;
        const bool gap_due = ack_due && peer.receiver.has_gap();
        if (!gap_due && !peer.owes_probe_answer && fill_series(node, series, now)) {
            if (peer.sender.has_more_after_prepared() || peer.ask) make_ready(node); // at the end of the queue
            return true;
        }
        if (ack_due || peer.ask || peer.owes_probe_answer) {
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
    std::size_t left = Sender::series_bytes_max;
    PacketHeader header;
    series.to = node;
    series.count = 0;
    series.is_retransmission = peer.sender.has_repairs();
    peer.sender.forget_prepared();
    while (series.count < Sender::series_max) {
        const std::size_t i = series.count;
        if (!peer.sender.next_packet(i == 0 ? room : std::min(room, left), now, header, series.packets[i],
                                     series.heads))
            break;
        if (i == 0) address(node, header, credits_.grant(node), false, now);
        finish(peer, header, series.packets[i], i);
        const std::size_t bytes = series.packets[i].bytes();
        ++series.count;
        left -= std::min(left, bytes);
        if (i != 0 && bytes < room) break; // smaller than the first, so it must be the last
        room = bytes;
    }
    if (series.count == 0) return false;
    if (peer.sender.is_stuck_after_prepared(now)) {
        header.flags |= flag::ack_now;
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
    address(node, header, credits_.grant(node), true, now);
    header.ack_words = static_cast<std::uint8_t>(words);
    header.bytes = static_cast<std::uint16_t>(sizeof header + words * 8);
    if (std::exchange(peer.ask, false)) header.flags |= flag::ack_now;
    if (std::exchange(peer.owes_probe_answer, false)) {
        header.flags |= flag::probe_answer;
        header.sequence = peer.probe;
    }
    series.to = node;
    series.count = 1;
    series.is_retransmission = false;
    series.packets[0] = {memory, header.bytes, {}, false};
    peer.sender.forget_prepared();
    finish(peer, header, series.packets[0], 0);
}

/// Fills a probe, and asks the peer for an answer by a packet after it: the probe is lost if that one arrives and the
/// probe is not answered.
void Endpoint::fill_probe(Node node, Series& series, Instant now) noexcept {
    Peer& peer = *peers_[node];
    const std::uint32_t bytes = peer.path.probe_bytes();
    KUMI_ASSERT(bytes >= packet_bytes_min);
    PacketHeader header{};
    std::byte* const memory = series.heads[0];
    std::memset(memory, 0, piece_head_bytes);
    address(node, header, credits_.grant(node), false, now);
    header.flags = flag::probe | flag::ack_now;
    header.bytes = static_cast<std::uint16_t>(bytes);
    header.sequence = peer.path.probe_number();
    series.to = node;
    series.count = 1;
    series.is_retransmission = false;
    series.packets[0] = {memory, piece_head_bytes, Bytes(zeros, bytes - piece_head_bytes), true};
    peer.sender.forget_prepared();
    finish(peer, header, series.packets[0], 0);
    peer.ask = true;
}

void Endpoint::fill_farewell(Node node, Series& series, Instant now) noexcept {
    fill_bare(node, series, now);
    PacketHeader header;
    std::memcpy(&header, series.packets[0].head, sizeof header);
    header.flags |= flag::farewell;
    if (peers_[node]->gone == Gone::no_memory_here) header.flags |= flag::no_memory;
    finish(*peers_[node], header, series.packets[0], 0);
}

void Endpoint::on_sent(const Series& series, std::size_t count, bool in_burst, Instant now) noexcept {
    Peer& peer = *peers_[series.to];
    if (count == 0) {
        PacketHeader header;
        std::memcpy(&header, series.packets[0].head, sizeof header);
        const bool is_bare = (header.flags & flag::data) == 0;
        if (is_bare && (header.flags & flag::ack_now) != 0) peer.ask = true;
        if (is_bare && (header.flags & flag::probe_answer) != 0) peer.owes_probe_answer = true;
        if (is_bare && (header.flags & flag::report) != 0) peer.owes_report = true;
        peer.sender.forget_prepared();
        if (is_gone(series.to)) return;
        peer.receiver.acknowledge_by(now);
        make_ready(series.to);
        return;
    }
    note_talk(series.to, now);
    peer.counters.packets_sent += count;
    for (std::size_t i = 0; i < count; ++i) peer.counters.bytes_sent += series.packets[i].bytes();
    if (count < series.count) make_ready(series.to);
    if (peer.sender.has_prepared()) peer.sender.on_sent(count, peer.transmission, in_burst, now);
    else on_bare_sent(peer, series);
    peer.transmission += static_cast<Sequence>(count);
    watch(series.to, deadline_of(series.to, now));
}

void Endpoint::on_bare_sent(Peer& peer, const Series& series) noexcept {
    PacketHeader header;
    std::memcpy(&header, series.packets[0].head, sizeof header);
    if ((header.flags & flag::probe) != 0) return peer.path.on_probe_sent(header.sequence, peer.transmission);
    ++peer.counters.bare_acks_sent;
}

bool Endpoint::next_farewell(Series& series, bool more) noexcept {
    const unsigned round = more ? 1 : 2;
    for (Node node = 0; node < options_.nodes; ++node) {
        Peer& peer = *peers_[node];
        if (is_gone(node) || !peer.talked || peer.farewells >= round || (more && !peer.sender.idle())) continue;
        peer.farewells = round;
        fill_farewell(node, series, last_time_);
        return true;
    }
    return false;
}

} // namespace kumi::reliable
