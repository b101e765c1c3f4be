#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/reliable/packet.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::reliable {

struct EndpointOptions {
    Node self = 0;
    Node nodes = 1;
    std::uint64_t token = 0;
    std::uint32_t incarnation = 0; // larger in each life of this node
    Checked checked = Checked::heads; // `nothing` where something better protects packets
    std::size_t message_bytes_max = std::size_t{16} << 20;
    std::size_t receive_bytes = std::size_t{1} << 20; // where packets wait for this node: the socket's buffer
    std::uint32_t window_packets_max = 2048;          // a power of two, 2048 at most
    Duration ack_delay_max = std::chrono::milliseconds(1); // waits for an answer that carries the acknowledgement
    Duration hold_max = std::chrono::microseconds(50);     // messages sent back to back within this share packets
    Duration silence_max = std::chrono::seconds(60); // a peer that does not answer for so long is gone; 0: never
    // The next three nodes are asked this often whether they still listen, so that a death is noticed though nobody
    // talks to the dead; 0: never.
    Duration watch_every{0};
    // There are other paths to the peers. A silent peer is then not gone, because it may be silent on this path only.
    // And messages that did not arrive at a peer that refuses are kept until give_up(), to be sent by another path.
    bool has_alternatives = false;
    // A peer is gone when a message to or from it has found no memory for so long.
    Duration memory_wait_max = std::chrono::seconds(10);
    Sequence first_sequence = 0; // where all counts start that wrap; equal on all nodes
};

/// What a peer says about itself when the job starts.
struct Introduction {
    std::uint32_t incarnation = 0;
    std::uint32_t credit_guaranteed = 0;
    std::uint32_t packet_bytes = 1472; // the largest that the hosts can send; a multiple of 8
    std::uint32_t sure_bytes = packet_bytes_max; // packets of up to this size pass; larger ones are probed first
};

/// Whether a peer is gone, and why.
enum class Gone : std::uint8_t {
    no,
    left,            // the peer said farewell
    refused,         // the peer did not answer, while its host said that nobody listens there
    silent,          // the peer did not answer for silence_max, nor did its host
    restarted,       // the peer has a new incarnation, which knows nothing of the earlier one
    given_up,        // by give_up()
    no_memory_here,  // this node has no memory for a message to or from the peer
    no_memory_there, // the peer said that it has no memory for a message
};
const char* name_of(Gone reason) noexcept;

} // namespace kumi::reliable
