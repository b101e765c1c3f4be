#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/reliable/packet.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::reliable {

/// One packet to be sent, in two pieces of memory. Valid until the sender is called again.
struct OutPacket {
    std::byte* head;
    std::size_t head_bytes;
    Bytes body; // a multiple of 8 bytes; empty if everything is in the head
    bool is_piece; // holds a piece of a long message

    std::size_t bytes() const noexcept { return head_bytes + body.size(); }
};

struct SenderOptions {
    std::uint32_t packet_bytes = 1472;
    std::uint32_t window_packets_max = 2048;
    std::size_t queue_bytes = 0; // limit for blocks that are not acknowledged; two messages fit whatever their size
    std::uint32_t credit_guaranteed = 0; // credit that the peer always grants
    Sequence first_sequence = 0;
    Duration hold_max{};
};

} // namespace kumi::reliable
