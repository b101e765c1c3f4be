#include "kumi/reliable/credits.hpp"

#include <algorithm>

namespace kumi::reliable {

std::uint32_t CreditPool::guaranteed(std::size_t capacity_bytes, Node peers, std::size_t packet_bytes) noexcept {
    const std::size_t part = capacity_bytes / 2 / std::max<std::size_t>(peers, 1);
    return static_cast<std::uint32_t>(std::max<std::size_t>(part, 2 * weight_of(packet_bytes)));
}

CreditPool::CreditPool(std::size_t capacity_bytes, Node peers, std::uint32_t guaranteed, std::uint32_t peer_max,
                       std::uint32_t first)
    : guaranteed_(guaranteed), peer_max_(peer_max), first_(first),
      loans_(static_cast<std::uint32_t>(capacity_bytes -
                                        std::min<std::size_t>(capacity_bytes, std::size_t{guaranteed} * peers))),
      peers_(peers, Peer{.limit = first + guaranteed, .consumed = first}) {
    active_.reserve(peers);
}

std::uint32_t CreditPool::lent(const Peer& peer) const noexcept {
    const std::uint32_t outstanding = peer.limit - peer.consumed;
    return outstanding > guaranteed_ ? outstanding - guaranteed_ : 0;
}

void CreditPool::on_consumed(Node node, std::uint32_t weight, Instant now) noexcept {
    Peer& peer = peers_[node];
    lent_ -= lent(peer);
    peer.consumed += weight;
    // A peer that sent more than it was allowed has no credit, not negative credit.
    if (static_cast<std::int32_t>(peer.limit - peer.consumed) < 0) peer.limit = peer.consumed;
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
    peers_[node] = Peer{.limit = first_ + guaranteed_, .consumed = first_, .active = peers_[node].active};
}

void CreditPool::end_loans(Instant now) noexcept {
    const bool was_away = now - looked_at_ > quiet_peer; // then this node was stopped, and the peers were not quiet
    looked_at_ = now;
    if (was_away) {
        for (const Node node : active_) peers_[node].last_consumed = now;
        return;
    }
    std::erase_if(active_, [&](Node node) {
        Peer& peer = peers_[node];
        if (now - peer.last_consumed < quiet_peer) return false;
        lent_ -= lent(peer);
        if (peer.limit - peer.consumed > guaranteed_) peer.limit = peer.consumed + guaranteed_;
        peer.active = false;
        return true;
    });
}

std::uint32_t CreditPool::share() const noexcept {
    return std::min(guaranteed_ + loans_ / static_cast<std::uint32_t>(std::max<std::size_t>(active_.size(), 1)),
                    peer_max_);
}

std::uint32_t CreditPool::growth(Node node) const noexcept {
    const Peer& peer = peers_[node];
    const std::uint64_t lent_to_others = lent_ - lent(peer);
    const std::uint64_t free = loans_ > lent_to_others ? loans_ - lent_to_others : 0;
    const std::uint64_t lendable = std::min<std::uint64_t>(share(), guaranteed_ + free);
    // A peer that sends nothing has no use for a loan, and would never use it up.
    const auto target = peer.active ? static_cast<std::uint32_t>(lendable) : guaranteed_;
    const std::uint32_t outstanding = peer.limit - peer.consumed;
    return target > outstanding ? target - outstanding : 0;
}

std::uint32_t CreditPool::grant(Node node) noexcept {
    Peer& peer = peers_[node];
    const std::uint32_t more = growth(node);
    lent_ -= lent(peer);
    peer.limit += more;
    lent_ += lent(peer);
    return peer.limit;
}

std::uint64_t CreditPool::outstanding_of_all() const noexcept {
    std::uint64_t all = 0;
    for (const Peer& peer : peers_) all += peer.limit - peer.consumed;
    return all;
}

} // namespace kumi::reliable
