#pragma once

#include "kumi/reliable/packet.hpp"

#include <array>
#include <cstdint>

namespace kumi::reliable {

/// Counters of one peer, since it was introduced.
struct PeerCounters {
    std::uint64_t packets_sent = 0; // with retransmissions
    std::uint64_t bytes_sent = 0;
    std::uint64_t packets_received = 0; // valid packets
    std::uint64_t bytes_received = 0;
    std::uint64_t repairs_sent = 0;   // packets retransmitted because the peer reported a gap
    std::uint64_t timeouts = 0;       // packets retransmitted because no answer came in time
    std::uint64_t repairs_asked = 0;  // acknowledgements sent that reported a gap
    std::uint64_t repairs_needless = 0; // packets retransmitted although the first transmission had arrived
    std::uint64_t bare_acks_sent = 0;
    std::uint64_t duplicates = 0;     // packets received that had arrived before
    std::uint64_t overtaken = 0;      // packets received ahead of an earlier one
    std::uint64_t congested = 0;      // times that the congestion window was reduced
};

/// Dropped packets by cause, of all peers together: the source of most of these packets is not known.
struct DropCounters {
    std::array<std::uint64_t, drop_causes> by_cause{};

    void count(Drop cause) noexcept { ++by_cause[static_cast<std::size_t>(cause)]; }
    std::uint64_t of(Drop cause) const noexcept { return by_cause[static_cast<std::size_t>(cause)]; }
};

} // namespace kumi::reliable
