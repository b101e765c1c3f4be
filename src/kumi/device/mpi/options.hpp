#pragma once

#include <cstddef>
#include <cstdint>

namespace kumi::device::mpi {

/// How much memory a channel has, and how its node sleeps. Must be equal on all nodes.
struct Options {
    /// The largest message. A message that fits into a packet or a page, after a header of 16 bytes, is sent in one;
    /// larger ones are announced.
    std::size_t message_bytes_max = std::size_t{4} << 20;
    /// Best a little below the size that MPI sends eagerly, without asking the receiver (Open MPI in shared memory: 4
    /// KiB with its own header).
    std::size_t packet_bytes = 4032;
    /// For messages that MPI sends by rendezvous; has room for the headers that layers above put before 64 KiB.
    std::size_t page_bytes = (std::size_t{64} << 10) + 512;
    /// Receives that are always posted, for packets of any node. Packets beyond these wait inside MPI.
    std::uint32_t receives = 16;
    std::uint32_t page_receives = 8;
    /// Most packets and pages under way from this node to all others together. There are few pages: more would not
    /// arrive sooner, because they share the bandwidth.
    std::uint32_t sends_max = 128;
    std::uint32_t page_sends_max = 4;
    /// Buffers for outgoing large messages, to all nodes together; at most two of them to one node. Memory is allocated
    /// at the first use, as it is for incoming ones.
    std::uint32_t large_sends_max = 8;
    std::uint32_t large_receives_max = 16;
    /// Sleep in a blocking MPI call: for simulators, where naps would cost more than messages, and time is not the
    /// clock's. Only with one thread. Deadlines and wake() do not end such a sleep.
    bool sleeps_in_mpi = false;
};

} // namespace kumi::device::mpi
