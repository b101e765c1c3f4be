#pragma once

// The properties of channels.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kumi::pm {

/// What a channel can do. Latency and bandwidth are orders of magnitude, not measurements: a caller that must choose
/// between networks measures them.
struct Traits {
    std::string_view device;          // "shmem", "udp", ...
    std::size_t message_bytes_max;    // of the largest message; to send a larger one is a bug of the caller
    std::size_t bytes_per_peer_max;   // memory that one more peer takes at most, on both sides together
    std::uint32_t latency_class_ns;   // order of magnitude, one way, small message
    std::uint32_t bandwidth_class_mb; // order of magnitude, megabytes per second, large messages
    bool polls_memory = false;        // an empty poll() makes no system call
    bool ignores_deadlines = false;   // only a message ends a sleep: the clock is that of a simulator
};

} // namespace kumi::pm
