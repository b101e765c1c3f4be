#pragma once

// The format of a channel's MPI messages. There are packets, small ones and pages, which differ only in their tag and
// in the receives that are posted for them, so that MPI uses small buffers for small packets. They may complete out of
// order, and so they have sequences. A large message is a packet that announces it, and a second MPI message, with a
// tag of its own, that has only its bytes.
//
// Flow control. At most window_packets - 1 packets with a sequence may be under way from one node to another: sent, and
// not yet taken by the handler there. Every packet reports how many packets of the other direction were taken. A packet
// of kind `credit` does only that, and is sent when half the window was taken and no other packet was sent. So what
// waits inside MPI, or here behind a large message, is bounded for each pair of nodes. The last place of the window is
// for `goodbye`.

#include <cstddef>
#include <cstdint>

namespace kumi::device::mpi {

enum class Kind : std::uint32_t {
    small,   // the message follows the header
    large,   // the message comes in an MPI message of its own
    goodbye, // the last packet of its sender, which takes nothing any more either
    credit,  // has no sequence
};

/// First bytes of every packet. All machines of a job have one byte order.
struct PacketHeader {
    std::uint32_t sequence; // wraps
    std::uint32_t taken;    // how many packets of the other direction were taken; wraps
    Kind kind;
    std::uint32_t bytes; // of the message
};
static_assert(sizeof(PacketHeader) == 16);

inline constexpr std::uint32_t window_packets = 32; // a power of two, so that sequences may wrap

inline constexpr int packet_tag = 1;
inline constexpr int page_tag = 2;
/// Tag of the bytes of a large message.
constexpr int large_tag(std::uint32_t sequence) noexcept { return static_cast<int>(3 + sequence % window_packets); }

} // namespace kumi::device::mpi
