#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kumi::pm {

/// What a channel can do. Classes, not measurements: whoever must choose between networks measures them.
struct Traits {
    std::string_view device;          // "shmem", "udp", ...
    std::size_t message_bytes_max;    // the largest message; larger ones are the caller's bug
    std::size_t bytes_per_peer_max;   // memory that one more peer costs at most, on both sides together
    std::uint32_t latency_class_ns;   // order of magnitude, one way, small message
    std::uint32_t bandwidth_class_mb; // order of magnitude, megabytes per second, large messages
    bool polls_memory = false;        // an empty poll() costs next to nothing: no system call
    bool ignores_deadlines = false;   // nothing but a message ends a sleep: a simulator's clock is not this host's
    bool sends_apart = false;         // one thread may send while another polls; arm() and what follows count as both
};

} // namespace kumi::pm
