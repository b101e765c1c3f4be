// Endpoint: incoming packets, and the messages read from them.

#include "kumi/reliable/endpoint/endpoint.hpp"

#include "kumi/base/assert.hpp"

#include <utility>

namespace kumi::reliable {

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
    if (is_gone(node)) {
        if ((header.flags & flag::farewell) == 0) on_packet_of_gone_peer(node);
        return drop(Drop::late);
    }

    const bool is_data = (header.flags & flag::data) != 0;
    const bool is_probe = !is_data && (header.flags & flag::probe) != 0;
    Bytes rest = packet.subspan(sizeof header);
    const bool is_report = !is_data && (header.flags & flag::report) != 0;
    if (!peer.sender.on_ack(header, is_data || is_probe || is_report ? Bytes{} : rest, peer.transmission, now))
        return drop(Drop::malformed);
    peer.heard_at = awake_;
    peer.asked_at = now;
    peer.silent = false;
    note_talk(node, now);
    if (peer.refused.is_on) [[unlikely]] on_answer_of_refused(node);
    if (peer.farewells != 0) [[unlikely]] peer.farewells = 0; // it has not got the farewell: next_farewell()
    peer.receiver.on_packet(header, now);
    if (is_probe) peer.probe = header.sequence, peer.owes_probe_answer = true, make_ready(node);
    if (!is_data && (header.flags & flag::probe_answer) != 0) peer.path.on_answer(header.sequence, now), on_path(node);
    if (peer.path.on_latest(header.latest, now)) [[unlikely]] on_path(node);
    if ((header.flags & flag::farewell) != 0)
        return lose(node, (header.flags & flag::no_memory) != 0 ? Gone::no_memory_there : Gone::left), packet.size();
    if (is_report && !is_probe) [[unlikely]] on_report(rest, now);
    Block* reassembled = nullptr; // a packet that arrived in fragments
    if (is_data && (header.flags & flag::fragment) != 0) [[unlikely]] {
        Receiver::Verdict verdict;
        reassembled = peer.receiver.on_fragment(header.sequence, rest, verdict, now);
        if (verdict == Receiver::Verdict::malformed) drops_.count(Drop::malformed);
        if (verdict == Receiver::Verdict::beyond_window) drops_.count(Drop::beyond_window);
        if (reassembled == nullptr)
            return note_memory(node, peer.receiver.wanted_bytes(), 0, false), touch(node), packet.size();
        rest = Bytes(reassembled->data(), reassembled->bytes);
        header.bytes = static_cast<std::uint16_t>(sizeof header + rest.size());
    }
    if (is_data) {
        const Receiver::Verdict verdict = peer.receiver.on_data(header, rest, now);
        note_memory(node, peer.receiver.wanted_bytes(),
                    verdict == Receiver::Verdict::next ? options_.message_bytes_max : 0, false);
        switch (verdict) {
        case Receiver::Verdict::next:
            begin_reading(node, rest, std::exchange(reassembled, nullptr), weight_of(header.bytes), now);
            break;
        case Receiver::Verdict::put_aside: read_on(node, now); break; // notes that the receiver is stalled, if it is
        case Receiver::Verdict::beyond_window: drops_.count(Drop::beyond_window); break;
        case Receiver::Verdict::malformed: drops_.count(Drop::malformed); break;
        case Receiver::Verdict::duplicate: break;
        }
        if (reassembled != nullptr) pool_.give_back(reassembled);
    }
    touch(node);
    return packet.size();
}

/// Updates deadlines and the ready list of all peers that packets came from, once for all packets of one batch.
void Endpoint::settle(Instant now) noexcept {
    for (const Node node : touched_) {
        Peer& peer = *peers_[node];
        peer.touched = false;
        if (is_gone(node)) continue;
        if (peer.memory_wait.is_new) [[unlikely]] settle_memory(peer, now);
        if (peer.sender.has_repairs() || (peer.sender.has_closed() && peer.sender.may_send(now))) make_ready(node);
        acknowledge_if_due(node, now);
        watch(node, deadline_of(node, now));
    }
    touched_.clear();
}

void Endpoint::acknowledge_if_due(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (peer.receiver.ack_deadline() <= now) return make_ready(node);
    if (peer.receiver.unacknowledged_weight() < guaranteed_ / 8) return; // too little to matter; the most common case
    // The peer may have little credit left: a quarter more than it has is worth a packet.
    const std::uint32_t growth = credits_.growth(node);
    const bool worth_telling = growth != 0 && growth >= (growth + credits_.outstanding(node)) / 4;
    if (worth_telling || peer.receiver.unacknowledged_weight() >= credits_.share() / 4)
        peer.receiver.acknowledge_by(now);
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

/// Reads the packet that is next in order, if it arrived early and was put aside.
bool Endpoint::read_on(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (reading_.active) return true;
    Block* const block = peer.receiver.take_aside();
    note_memory(node, peer.receiver.wanted_bytes(), block != nullptr ? options_.message_bytes_max : 0, false);
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
            // The last message of its packet, with nothing put aside behind it: spare the caller another call.
            if (reading_.records.empty() && reading_.block == nullptr && !receiver.has_aside()) reading_.active = false;
            return true;
        }
        end_reading();
        if (read_on(node, now)) continue;
        if (is_gone(node)) {
            forget_unreadable(node);
            continue;
        }
        touch(node);
    }
    return false;
}

/// Continues with a peer whose message waited for room, if there is room now.
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

} // namespace kumi::reliable
