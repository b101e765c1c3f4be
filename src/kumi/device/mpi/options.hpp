#pragma once

#include <cstddef>
#include <cstdint>

namespace kumi::device::mpi {

/// How much memory a channel has, and how its node sleeps. The same on all nodes.
struct Options {
    /// The largest message. Those that fit into a packet or a page, behind 16 bytes of its own, travel in one; larger
    /// ones are announced.
    std::size_t message_bytes_max = std::size_t{4} << 20;
    /// Best a little below what MPI sends at once, without asking the receiver (Open MPI in shared memory: 4 KiB with
    /// its own header).
    std::size_t packet_bytes = 4032;
    /// For what MPI asks the receiver for; with room for what layers above put before 64 KiB.
    std::size_t page_bytes = (std::size_t{64} << 10) + 512;
    /// Receives that are posted at any time, for packets of whatever node. More that come at once wait inside MPI.
    std::uint32_t receives = 16;
    std::uint32_t page_receives = 8;
    /// Packets and pages under way from this node to all others together. Few pages: more do not leave any sooner, they
    /// share the way.
    std::uint32_t sends_max = 128;
    std::uint32_t page_sends_max = 4;
    /// Buffers for large messages on their way out, to all nodes together; two of them at most to one node. Each has
    /// memory from its first use on, as those for what comes in have.
    std::uint32_t large_sends_max = 8;
    std::uint32_t large_receives_max = 16;
    /// Sleeping is a blocking MPI call: for simulators, where naps would cost more than messages, and time is not that
    /// of the clock. One thread only; deadlines and wake() do not end such a sleep.
    bool sleeps_in_mpi = false;
};

} // namespace kumi::device::mpi
