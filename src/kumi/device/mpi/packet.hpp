#pragma once

// What MPI carries for a channel: packets, small ones and pages, which differ in nothing but their tag and the receives
// that are posted for them; so MPI takes small buffers for small packets. They do not complete in the order in which
// they were sent, and so they have sequences. A large message is a packet that announces it and, with a tag of its own,
// a second one of nothing but its bytes.
//
// Flow control. Of the packets that take a sequence at most window_packets - 1 may be under way from one node to
// another: sent, and not taken by the handler there. Every packet tells how many of the other direction were taken; one
// of kind `credit` does nothing else, and goes when half the window was taken and nothing else went. So what waits
// inside MPI, or here behind a large message, is bounded for each pair. The last place of the window is for `goodbye`.

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

inline constexpr int packet_tag = 1;
inline constexpr int page_tag = 2;
/// Of the bytes of a large message.
constexpr int large_tag(std::uint32_t sequence) noexcept { return static_cast<int>(3 + sequence % window_packets); }

} // namespace kumi::device::mpi
