// Endpoint: the watch over nodes that nobody talks to.
//
// The nodes form a ring by their numbers. Each node asks the next three that are not gone, a few times in a second,
// whether they still listen. If the process of one has ended, its host answers by ICMP that nobody listens. Of the
// nodes that watch it the nearest tells all others, in three rounds. What is told counts as much as what the host says:
// the others ask the node themselves, and give it up if it does not answer. So a death costs a few packets for each
// node, and what a node sends while nobody dies does not grow with the job.
//
// A node that said farewell to some may still have something to send to others, and be slow. That it has left is only a
// reason for them to ask: its host tells when nobody listens.

#include "kumi/reliable/endpoint/endpoint.hpp"

#include <utility>

namespace kumi::reliable {
namespace {

constexpr unsigned watched_peers = 3;
/// Questions stay in the socket of a process that is stopped, and take its room. After so many without an answer it is
/// asked only once in a while.
constexpr unsigned looks_often = 64;
constexpr unsigned looks_per_question = 16;

} // namespace

void Endpoint::begin_close() noexcept {
    is_closing_ = true;
    reports_.clear(); // most of the others are about to end, too
}

void Endpoint::watch_next_nodes(Instant now) noexcept {
    if (now < next_watch_) return;
    const bool is_first = next_watch_ == Instant{};
    next_watch_ = now + options_.watch_every;
    if (is_first) return;
    reports_.begin_round();
    if (!reports_.empty()) send_reports();
    unsigned left = watched_peers;
    for (Node step = 1; step < options_.nodes && left > 0; ++step) {
        const Node node = (options_.self + step) % options_.nodes;
        if (is_gone(node)) continue;
        // It is asked anyway. Its neighbours may have died with it, so one more is looked at.
        if (peers_[node]->refused.is_likely()) {
            ++left;
            continue;
        }
        --left;
        ask_if_listening(node);
    }
}

void Endpoint::ask_if_listening(Node node) noexcept {
    Peer& peer = *peers_[node];
    const bool has_answered = std::exchange(peer.watch.packets, peer.counters.packets_received) !=
                              peer.counters.packets_received;
    peer.watch.looks = has_answered ? 0 : peer.watch.looks + 1;
    if (peer.watch.looks > looks_often && peer.watch.looks % looks_per_question != 0) return;
    peer.ask = true;
    make_ready(node);
}

/// True if this node is the nearest before `node` in the ring of those that live.
bool Endpoint::is_nearest_before(Node node) const noexcept {
    for (Node step = 1; step < options_.nodes; ++step) {
        const Node before = (node + options_.nodes - step) % options_.nodes;
        if (before == options_.self) return true;
        if (!is_gone(before) && !peers_[before]->refused.is_likely()) return false;
    }
    return false;
}

/// Begins to tell the others that `node` does not listen any more. Not `at_once`: with the next watch, by which time
/// this node may be about to end, as at the end of a job.
void Endpoint::report(Node node, bool at_once) noexcept {
    const bool has_left = peers_[node]->gone == Gone::left;
    if (!has_watch() || is_closing_ || !is_nearest_before(node) || !reports_.add(node, has_left)) return;
    if (at_once) send_reports();
}

void Endpoint::send_reports() noexcept {
    for (Node node = 0; node < options_.nodes; ++node) {
        Peer& peer = *peers_[node];
        if (node == options_.self || is_gone(node) || peer.refused.is_likely()) continue;
        peer.owes_report = true;
        make_ready(node);
    }
}

void Endpoint::fill_report(Node node, Series& series, Instant now) noexcept {
    Peer& peer = *peers_[node];
    PacketHeader header{};
    std::byte* const memory = series.heads[0];
    const std::size_t words = reports_.write(memory + sizeof header);
    address(node, header, credits_.grant(node), false, now);
    header.flags = flag::report;
    header.ack_words = static_cast<std::uint8_t>(words);
    header.bytes = static_cast<std::uint16_t>(sizeof header + words * 8);
    series.to = node;
    series.count = 1;
    series.is_retransmission = false;
    series.packets[0] = {memory, header.bytes, {}, false};
    peer.sender.forget_prepared();
    finish(peer, header, series.packets[0], 0);
}

/// A peer that was said not to listen has answered.
void Endpoint::on_answer_of_refused(Node node) noexcept {
    peers_[node]->refused.is_on = false;
    reports_.remove(node);
}

void Endpoint::on_report(Bytes words, Instant now) noexcept {
    for (std::uint64_t word = 0; read_value(words, word); words = words.subspan(sizeof word)) {
        const std::uint64_t number = word & ~Reports::left_bit;
        if (number >= options_.nodes || number == options_.self) continue;
        const auto node = static_cast<Node>(number);
        if ((word & Reports::left_bit) == 0) {
            on_refused(node, now);
        } else if (!is_gone(node)) {
            peers_[node]->ask = true;
            make_ready(node);
        }
    }
}

} // namespace kumi::reliable
