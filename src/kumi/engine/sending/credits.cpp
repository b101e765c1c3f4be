#include "kumi/engine/sending/credits.hpp"

#include <algorithm>
#include <utility>

namespace kumi::engine {

bool Credits::on_handled_with_attention(Node from, std::uint32_t pressure) noexcept {
    Peer& peer = peers_[from];
    if ((peer.attention & held_bit) == 0) return ++peer.handled_here, true; // it has asked
    Kept& kept = kept_[from];
    ++kept.passed;
    kept.pressure = std::max(pressure, kept.pressure);
    return false;
}

void Credits::on_kept(Node from, std::uint32_t pressure, bool is_held) noexcept {
    Kept& kept = kept_[from];
    ++kept.count;
    kept.pressure = std::max(kept.pressure, pressure);
    if (!is_held) return;
    ++kept.held;
    set_attention(peers_[from], held_bit, true);
}

bool Credits::on_kept_handled(Node from, bool was_held) noexcept {
    Peer& peer = peers_[from];
    Kept& kept = kept_[from];
    if (--kept.count == 0) kept.pressure = 0;
    if (was_held) {
        ++peer.handled_here;
        if (--kept.held == 0) {
            peer.handled_here += std::exchange(kept.passed, 0);
            set_attention(peer, held_bit, false);
        }
    } else if (kept.held != 0) {
        ++kept.passed; // it may have come after one that is held
        return false;
    } else {
        ++peer.handled_here;
    }
    return is_much_untold(peer) || (peer.attention & asked_bit) != 0;
}

std::vector<Header> Credits::give_up(Node lost) {
    Peer& peer = peers_[lost];
    std::vector<Header> unhandled;
    for (std::uint64_t number = peer.handled; number < peer.requested;) unhandled.push_back(place_of(lost, ++number));
    peer.is_lost = true;
    unhandled_ -= peer.requested - peer.handled;
    peer.handled = peer.requested;
    waiting_ -= peer.waiting;
    peer.waiting = 0;
    return unhandled;
}

} // namespace kumi::engine
