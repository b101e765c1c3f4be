#pragma once

#include <cstddef>
#include <cstdint>

namespace kumi::device::mpi {

/// How much memory a channel has, and how its node sleeps. The same on all nodes.
struct Options {
    /// The largest message. Those of up to small_bytes_max travel in one packet, larger ones are announced.
    std::size_t message_bytes_max = std::size_t{4} << 20;
    /// Receives that are posted at any time, for packets of whatever node. More that come at once wait inside MPI.
    std::uint32_t receives = 16;
    /// Packets under way from this node to all others together.
    std::uint32_t sends_max = 128;
    /// Buffers for large messages on their way out, to all nodes together; two of them at most to one node. Each has
    /// memory from its first use on, as those for what comes in have.
    std::uint32_t large_sends_max = 8;
    std::uint32_t large_receives_max = 16;
    /// Sleeping is a blocking MPI call: for simulators, where naps would cost more than messages, and time is not that of
    /// the clock. One thread only; deadlines and wake() do not end such a sleep.
    bool sleeps_in_mpi = false;
};

} // namespace kumi::device::mpi
