#pragma once

// Who may send how much to this node, so that what all peers together have under way fits where it waits (the
// socket's buffer). Half of the capacity belongs to the peers in equal parts, used or not: a peer that has been quiet
// may always send its part at once. The other half is lent to those that send just now, in equal parts too. A peer's
// grant is a line that only moves forward: the total weight of packets up to which it may send.
//
// A loan ends when it was used, or by time: a sender that was quiet for `quiet_sender` falls back to its own part by
// itself, and after the longer `quiet_peer` this side takes it that it has.

#include "kumi/base/clock.hpp"
#include "kumi/reliable/packet.hpp"

#include <cstdint>
#include <vector>

namespace kumi::reliable {

class CreditPool {
public:
    static constexpr Duration quiet_sender = std::chrono::milliseconds(20);
    static constexpr Duration quiet_peer = std::chrono::milliseconds(200);

    /// A part below what one packet needs would stop a peer for good.
    static std::uint32_t own_part(std::size_t capacity_bytes, Node peers, std::size_t packet_bytes) noexcept;

    /// No peer gets more than `peer_max` at once. Lines start at `first`.
    CreditPool(std::size_t capacity_bytes, Node peers, std::uint32_t own_part, std::uint32_t peer_max,
               std::uint32_t first = 0);

    /// `weight` from `peer` is out of the way.
    void on_consumed(Node peer, std::uint32_t weight, Instant now) noexcept;

    /// `peer` starts anew.
    void reset(Node peer) noexcept;

    /// The line that `peer` was told last.
    std::uint32_t line(Node peer) const noexcept { return peers_[peer].line; }
    /// The line to tell `peer` now.
    std::uint32_t grant(Node peer) noexcept;

    /// What `peer` was told last is this far ahead of what it has used up.
    std::uint32_t exposure(Node peer) const noexcept { return peers_[peer].line - peers_[peer].consumed; }
    /// What a grant would add to that line now.
    std::uint32_t growth(Node peer) const noexcept;
    /// One peer's share of the whole now.
    std::uint32_t share() const noexcept;

    /// All grants that are out; never more than the capacity, unless the own parts alone are.
    std::uint64_t exposure_of_all() const noexcept;

private:
    struct Peer {
        std::uint32_t line;
        std::uint32_t consumed;
        bool active = false;
        Instant last_consumed{};
    };

    std::uint32_t lent(const Peer& peer) const noexcept;
    void end_loans(Instant now) noexcept;

    std::uint32_t own_part_;
    std::uint32_t peer_max_;
    std::uint32_t first_;
    std::uint32_t loans_; // that there are to give
    std::uint64_t lent_ = 0;
    std::vector<Peer> peers_;
    std::vector<Node> active_;
    Instant looked_at_{};
};

} // namespace kumi::reliable
