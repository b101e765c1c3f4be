#pragma once

// Decides how much each peer may send to this node, so that everything under way from all peers fits where it waits
// (the socket's buffer). Half of the capacity is guaranteed to the peers in equal parts, used or not: a peer that has
// been quiet may always send that much at once. The other half is lent, also in equal parts, to the peers that are
// sending now. Credit is told to a peer as a limit that only grows: the total weight of packets up to which it may
// send.
//
// A loan ends when it has been used, or by time. A sender that was quiet for `quiet_sender` falls back to its
// guaranteed credit by itself. After the longer `quiet_peer` the receiver assumes that the sender has done so.

#include "kumi/base/clock.hpp"
#include "kumi/reliable/packet.hpp"

#include <cstdint>
#include <vector>

namespace kumi::reliable {

class CreditPool {
public:
    static constexpr Duration quiet_sender = std::chrono::milliseconds(20);
    static constexpr Duration quiet_peer = std::chrono::milliseconds(200);

    /// The credit that each peer is guaranteed. It is never less than two packets need, because less than one would
    /// stop a peer for good.
    static std::uint32_t guaranteed(std::size_t capacity_bytes, Node peers, std::size_t packet_bytes) noexcept;

    /// No peer has more than `peer_max` outstanding. Limits start at `first`.
    CreditPool(std::size_t capacity_bytes, Node peers, std::uint32_t guaranteed, std::uint32_t peer_max,
               std::uint32_t first = 0);

    /// Packets of `weight` from `peer` have been read.
    void on_consumed(Node peer, std::uint32_t weight, Instant now) noexcept;

    /// `peer` has a new incarnation, and starts with its guaranteed credit.
    void reset(Node peer) noexcept;

    /// The limit that `peer` was told last.
    std::uint32_t limit(Node peer) const noexcept { return peers_[peer].limit; }
    /// Raises the limit of `peer` as far as possible, and returns it to be told.
    std::uint32_t grant(Node peer) noexcept;

    /// Credit that `peer` was told and has not used.
    std::uint32_t outstanding(Node peer) const noexcept { return peers_[peer].limit - peers_[peer].consumed; }
    /// How much grant() would add to the limit now.
    std::uint32_t growth(Node peer) const noexcept;
    /// The credit that one sending peer may have outstanding now.
    std::uint32_t share() const noexcept;

    /// Outstanding credit of all peers. Never more than the capacity, unless the guaranteed credit alone is.
    std::uint64_t outstanding_of_all() const noexcept;

private:
    struct Peer {
        std::uint32_t limit;
        std::uint32_t consumed;
        bool active = false;
        Instant last_consumed{};
    };

    std::uint32_t lent(const Peer& peer) const noexcept;
    void end_loans(Instant now) noexcept;

    std::uint32_t guaranteed_;
    std::uint32_t peer_max_;
    std::uint32_t first_;
    std::uint32_t loans_; // weight that may be lent in all
    std::uint64_t lent_ = 0;
    std::vector<Peer> peers_;
    std::vector<Node> active_;
    Instant looked_at_{};
};

} // namespace kumi::reliable
