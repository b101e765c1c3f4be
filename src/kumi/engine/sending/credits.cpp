#include "kumi/engine/sending/credits.hpp"

namespace kumi::engine {

bool Credits::take(Peer& peer, std::uint16_t more) noexcept {
    if (more > peer.requested - peer.handled) [[unlikely]] return peer.is_lost; // what it said before comes late
    peer.handled += more;
    unhandled_ -= more;
    peer.has_asked = false;
    return true;
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
