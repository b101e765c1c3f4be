#pragma once

// Bursts of datagrams (UDP_SEGMENT), as Kumi sends long messages, by bare sockets.

#include "kumi/reliable/packet.hpp"

#include <cstdint>

namespace kumi::bench {

/// How a bare sender fills the network: datagrams of `datagram_bytes`, as many by one call as `bytes` hold.
struct Burst {
    int datagram_bytes;
    int bytes;

    /// What is left for content if each datagram begins with headers as large as Kumi's. They lie between the pieces of
    /// the content, so a burst is one piece of memory.
    double content() const noexcept { return 1.0 - double{reliable::piece_head_bytes} / datagram_bytes; }
};

/// As large as Ethernet carries, and as many as one call takes.
inline constexpr int pieces_of_burst = 44;
inline constexpr Burst burst_of_pieces{1500 - 28, pieces_of_burst*(1500 - 28)};

/// Sends bursts for ever. What the receiver tells by tell_sender() limits how much is under way.
void send_bursts(int socket, const Burst& burst);

/// For the receiver: tells the sender that so many bytes have arrived, if that is news. `told` begins with 0.
void tell_sender(int socket, std::uint64_t arrived, std::uint64_t& told);

} // namespace kumi::bench
