#pragma once

#include "kumi/reliable/packet.hpp"

#include <array>
#include <cstdint>

namespace kumi::reliable {

/// Counted per peer since it was introduced.
struct PeerCounters {
    std::uint64_t packets_sent = 0; // all transmissions
    std::uint64_t bytes_sent = 0;
    std::uint64_t packets_received = 0; // sound ones
    std::uint64_t bytes_received = 0;
    std::uint64_t repairs_sent = 0;   // packets sent again because the peer missed them
    std::uint64_t timeouts = 0;       // packets sent again because nothing was heard
    std::uint64_t repairs_asked = 0;  // acknowledgements that told of a gap
    std::uint64_t repairs_needless = 0; // packets sent again though the first had arrived
    std::uint64_t bare_acks_sent = 0;
    std::uint64_t duplicates = 0;     // packets that had arrived before
    std::uint64_t overtaken = 0;      // packets that came before an earlier one
    std::uint64_t congested = 0;      // times that the window was made smaller
};

/// Counted for all peers together: mostly nobody knows from whom these came.
struct DropCounters {
    std::array<std::uint64_t, drop_causes> by_cause{};

    void count(Drop cause) noexcept { ++by_cause[static_cast<std::size_t>(cause)]; }
    std::uint64_t of(Drop cause) const noexcept { return by_cause[static_cast<std::size_t>(cause)]; }
};

} // namespace kumi::reliable
