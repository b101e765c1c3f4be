#pragma once

// What MPI carries for a channel. All packets have one tag, so MPI matches those of a pair of nodes in the order in which
// they were sent; they need not complete in that order, and so they have sequences. A large message is a packet that
// announces it and, with a tag of its own, a second one of nothing but its bytes.
//
// Flow control. Of the packets that take a sequence at most window_packets - 1 may be under way from one node to another:
// sent, and not taken by the handler there. Every packet tells how many of the other direction were taken; one of kind
// `credit` does nothing else, and goes when half the window was taken and nothing else went. So what waits inside MPI, or
// here behind a large message, is bounded for each pair. The last place of the window is for `goodbye`.

#include <cstddef>
#include <cstdint>

namespace kumi::device::mpi {

enum class Kind : std::uint32_t {
    small,   // the message follows
    large,   // it comes by itself
    goodbye, // the last one of its sender, who takes nothing any more either
    credit,  // has no sequence
};

/// First bytes of every packet, in the byte order of the job's machines, which is one.
struct PacketHeader {
    std::uint32_t sequence; // wraps
    std::uint32_t taken;    // packets of the other direction that were; wraps
    Kind kind;
    std::uint32_t bytes; // of the message
};
static_assert(sizeof(PacketHeader) == 16);

inline constexpr std::uint32_t window_packets = 32; // a power of two, so that sequences may wrap
/// Below what MPIs send at once, without asking the receiver (Open MPI in shared memory: 4 KiB with its own header).
inline constexpr std::size_t packet_bytes_max = 4032;
inline constexpr std::size_t small_bytes_max = packet_bytes_max - sizeof(PacketHeader);

inline constexpr int packet_tag = 1;
/// Of the bytes of a large message.
constexpr int large_tag(std::uint32_t sequence) noexcept { return static_cast<int>(2 + sequence % window_packets); }

} // namespace kumi::device::mpi
