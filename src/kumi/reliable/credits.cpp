#include "kumi/reliable/credits.hpp"

#include <algorithm>

namespace kumi::reliable {

std::uint32_t CreditPool::own_part(std::size_t capacity_bytes, Node peers, std::size_t packet_bytes) noexcept {
    const std::size_t part = capacity_bytes / 2 / std::max<std::size_t>(peers, 1);
    return static_cast<std::uint32_t>(std::max<std::size_t>(part, 2 * weight_of(packet_bytes)));
}

CreditPool::CreditPool(std::size_t capacity_bytes, Node peers, std::uint32_t own_part, std::uint32_t peer_max,
                       std::uint32_t first)
    : own_part_(own_part), peer_max_(peer_max), first_(first),
      loans_(static_cast<std::uint32_t>(capacity_bytes -
                                        std::min<std::size_t>(capacity_bytes, std::size_t{own_part} * peers))),
      peers_(peers, Peer{.line = first + own_part, .consumed = first}) {
    active_.reserve(peers);
}

std::uint32_t CreditPool::lent(const Peer& peer) const noexcept {
    const std::uint32_t exposure = peer.line - peer.consumed;
    return exposure > own_part_ ? exposure - own_part_ : 0;
}

void CreditPool::on_consumed(Node node, std::uint32_t weight, Instant now) noexcept {
    Peer& peer = peers_[node];
    lent_ -= lent(peer);
    peer.consumed += weight;
    // A peer that overdraws has no more than nothing.
    if (static_cast<std::int32_t>(peer.line - peer.consumed) < 0) peer.line = peer.consumed;
    lent_ += lent(peer);
    peer.last_consumed = now;
    if (!peer.active) {
        peer.active = true;
        active_.push_back(node);
    }
    if (now - looked_at_ > quiet_peer / 4) end_loans(now);
}

void CreditPool::reset(Node node) noexcept {
    lent_ -= lent(peers_[node]);
    peers_[node] = Peer{.line = first_ + own_part_, .consumed = first_, .active = peers_[node].active};
}

void CreditPool::end_loans(Instant now) noexcept {
    const bool was_away = now - looked_at_ > quiet_peer; // then it was not the peers who were quiet
    looked_at_ = now;
    if (was_away) {
        for (const Node node : active_) peers_[node].last_consumed = now;
        return;
    }
    std::erase_if(active_, [&](Node node) {
        Peer& peer = peers_[node];
        if (now - peer.last_consumed < quiet_peer) return false;
        lent_ -= lent(peer);
        if (peer.line - peer.consumed > own_part_) peer.line = peer.consumed + own_part_;
        peer.active = false;
        return true;
    });
}

std::uint32_t CreditPool::share() const noexcept {
    return std::min(own_part_ + loans_ / static_cast<std::uint32_t>(std::max<std::size_t>(active_.size(), 1)),
                    peer_max_);
}

std::uint32_t CreditPool::growth(Node node) const noexcept {
    const Peer& peer = peers_[node];
    const std::uint64_t lent_to_others = lent_ - lent(peer);
    const std::uint64_t free = loans_ > lent_to_others ? loans_ - lent_to_others : 0;
    const std::uint64_t lendable = std::min<std::uint64_t>(share(), own_part_ + free);
    // A peer that only receives has no use for a loan, and would never give it back.
    const auto target = peer.active ? static_cast<std::uint32_t>(lendable) : own_part_;
    const std::uint32_t exposure = peer.line - peer.consumed;
    return target > exposure ? target - exposure : 0;
}

std::uint32_t CreditPool::grant(Node node) noexcept {
    Peer& peer = peers_[node];
    const std::uint32_t more = growth(node);
    lent_ -= lent(peer);
    peer.line += more;
    lent_ += lent(peer);
    return peer.line;
}

std::uint64_t CreditPool::exposure_of_all() const noexcept {
    std::uint64_t all = 0;
    for (const Peer& peer : peers_) all += peer.line - peer.consumed;
    return all;
}

} // namespace kumi::reliable
