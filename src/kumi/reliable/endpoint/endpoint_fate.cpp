// Endpoint: timers, and whether peers are gone.

#include "kumi/reliable/endpoint/endpoint.hpp"

#include <algorithm>
#include <utility>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;

/// A longer time between two calls of on_time() means that this process was stopped, or computed. It counts as this
/// much, because timers are never further apart than a second.
constexpr Duration awake_step_max = 1500ms;
/// Anybody can send an ICMP message which says that nobody listens at a peer's port, and a firewall may do so for a
/// while. So the peer itself is asked, this often. Not more often: a host sends six such messages to another host at
/// once, and then one a second.
constexpr Duration refused_ask = 100ms;
/// A peer that has not answered for this long, and of which this was said again meanwhile, is gone.
constexpr Duration refused_time = 300ms;
/// What is said twice within this time may be one event.
constexpr Duration refused_apart = 50ms;
/// What is said after a longer time without a word is a new event.
constexpr Duration refused_pause = 3s;
/// A program that waits for memory tries again sooner than this; later, the wait is over.
constexpr Duration memory_wait_pause = 3s;
/// A packet that is lost this often in a row may be too large for the path.
constexpr unsigned timeouts_to_doubt = 2;
/// A host that is alive answers within this time.
constexpr Duration host_answer_time = 100ms;

} // namespace

const char* name_of(Gone reason) noexcept {
    constexpr std::array names{
        "there", "left", "refused", "silent", "restarted", "given up", "out of memory here", "out of memory there"};
    return names[static_cast<std::size_t>(reason)];
}

void Endpoint::on_time(Instant now) noexcept {
    if (last_time_ != Instant{}) awake_ += std::min(now - last_time_, awake_step_max);
    last_time_ = now;
    settle(now);
    if (now < deadline_) return;
    watch_next_nodes(now);
    deadline_ = next_watch_;
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
    const unsigned timeouts = peer.sender.timeouts_in_a_row();
    if (peer.sender.on_time(now)) peer.ask = true;
    const bool is_one_more = peer.sender.timeouts_in_a_row() > timeouts; // on_time() is called for other reasons, too
    if (is_one_more && timeouts + 1 >= timeouts_to_doubt && peer.sender.first_bytes() > packet_bytes_min) {
        peer.path.doubt(now);
        if (peer.path.is_out()) peer.ask = true; // only bare packets may pass, and the last one may be lost
    }
    if (peer.ask || peer.receiver.ack_deadline() <= now || peer.path.next_probe() <= now || peer.sender.may_send(now))
        make_ready(node);
    if (peer.sender.waits_for_peer()) check_life(node);
    if (peer.refused.is_on) check_refused(node, now);
    if (peer.memory_wait.since != Instant{} && !is_gone(node)) check_memory(node, now);
}

void Endpoint::on_memory(Node node, std::size_t wanted_bytes, std::size_t got_bytes, bool is_sending) noexcept {
    Peer& peer = *peers_[node];
    if (wanted_bytes == 0) {
        if (got_bytes >= peer.memory_wait.bytes && is_sending == peer.memory_wait.is_sending) peer.memory_wait = {};
        return;
    }
    peer.memory_wait.bytes = wanted_bytes;
    peer.memory_wait.is_sending = is_sending;
    peer.memory_wait.is_new = true;
    touch(node);
}

void Endpoint::settle_memory(Peer& peer, Instant now) noexcept {
    Peer::MemoryWait& wait = peer.memory_wait;
    if (wait.since == Instant{} || now - wait.seen > memory_wait_pause) wait.since = now;
    wait.seen = now;
    wait.is_new = false;
}

void Endpoint::check_memory(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (now - peer.memory_wait.seen > memory_wait_pause) {
        peer.memory_wait = {};
        return;
    }
    if (peer.memory_wait.seen - peer.memory_wait.since < options_.memory_wait_max) return;
    lose(node, Gone::no_memory_here);
    peer.owes_farewell = true;
    make_ready(node);
}

void Endpoint::check_life(Node node) noexcept {
    Peer& peer = *peers_[node];
    if (options_.silence_max == Duration{0}) return;
    const Duration silent = awake_ - peer.heard_at;
    // Before a peer is called silent, its host is asked and has time to answer, however long the last check was ago.
    const bool was_asked = peer.checked_at > peer.heard_at && awake_ - peer.checked_at >= host_answer_time;
    if (silent >= options_.silence_max && was_asked) {
        peer.silent = true;
        if (!options_.has_alternatives) return lose(node, Gone::silent);
    }
    const Duration between = std::max<Duration>(options_.silence_max / 16, 2 * host_answer_time);
    if (silent < options_.silence_max / 2 || awake_ - peer.checked_at < between) return;
    peer.checked_at = awake_;
    if (std::find(checks_.begin(), checks_.end(), node) == checks_.end()) checks_.push_back(node);
}

std::optional<Node> Endpoint::next_host_check() noexcept {
    if (checks_.empty()) return std::nullopt;
    const Node node = checks_.back();
    checks_.pop_back();
    return node;
}

void Endpoint::on_host_alive(Node node) noexcept {
    peers_[node]->heard_at = awake_;
    peers_[node]->silent = false;
}

void Endpoint::give_up(Node node) noexcept {
    if (is_gone(node)) return peers_[node]->sender.clear();
    lose(node, Gone::given_up);
}

void Endpoint::on_refused(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (is_gone(node)) return;
    Peer::Refused& refused = peer.refused;
    if (!refused.is_on) refused = {.is_on = true, .since = now, .asked = refused.asked};
    refused.seen = now;
    if (refused.words == 0 || now - refused.counted >= refused_apart) {
        ++refused.words;
        refused.counted = now;
        if (refused.is_likely()) report(node, true);
    }
    check_refused(node, now);
    if (!is_gone(node) && refused.is_on) watch(node, now + refused_ask);
}

void Endpoint::check_refused(Node node, Instant now) noexcept {
    Peer& peer = *peers_[node];
    if (now - peer.refused.seen > refused_pause) {
        peer.refused.is_on = false; // nobody says so any more
        return;
    }
    if (peer.refused.is_likely() && now - peer.refused.since >= refused_time) return lose(node, Gone::refused);
    if (now - peer.refused.asked < refused_ask) return;
    peer.refused.asked = now;
    peer.ask = true;
    make_ready(node);
}

void Endpoint::lose(Node node, Gone reason) noexcept {
    Peer& peer = *peers_[node];
    peer.gone = reason;
    ++gone_count_;
    const bool may_go_elsewhere = reason == Gone::refused || reason == Gone::no_memory_here ||
                                  reason == Gone::no_memory_there;
    const bool is_kept = options_.has_alternatives && may_go_elsewhere;
    if (reason == Gone::left || reason == Gone::refused) report(node, reason == Gone::refused);
    if (!is_kept) peer.sender.clear();
    peer.receiver.stop_acknowledging();
    forget_unreadable(node);
}

/// A peer that this node considers gone still sends, and does not know. Without a farewell it would wait for this node
/// for ever, because this host is alive.
void Endpoint::on_packet_of_gone_peer(Node node) noexcept {
    Peer& peer = *peers_[node];
    if (options_.has_alternatives || (peer.gone != Gone::silent && peer.gone != Gone::refused)) return;
    peer.owes_farewell = true;
    make_ready(node);
}

/// Drops packets of a gone peer that can never be read: those after a gap, and those that wait for memory, if the lack
/// of memory is why the peer is gone.
void Endpoint::forget_unreadable(Node node) noexcept {
    Receiver& receiver = peers_[node]->receiver;
    const bool is_read = reading_.active && reading_.peer == node;
    const bool is_awaited = receiver.is_stalled() && peers_[node]->gone != Gone::no_memory_here;
    if (!is_read && !is_awaited) receiver.clear();
}

} // namespace kumi::reliable
