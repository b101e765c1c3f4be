#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kumi::device::udp {

/// Faults made on purpose, for users' own tests: what happens to packets that are sent. Probabilities from 0 to 1.
struct Faults {
    double loss = 0;
    double duplicate = 0;
    double reorder = 0;
    double corrupt = 0;
    double truncate = 0;
    // Larger datagrams get lost, as with a switch that carries less than the hosts; 0: none do.
    std::uint32_t largest = 0;
    bool burst_vanish = false; // bursts get lost, as with a broken offload
    std::uint64_t seed = 1;

    bool any() const noexcept {
        return loss + duplicate + reorder + corrupt + truncate > 0 || largest != 0 || burst_vanish;
    }
};

/// The send buffer of a socket, of which the system allows twice as much. It bounds what waits in the host's own queue,
/// and is enough for a network card of 10 Gbit/s until the card reports what it has sent. With a larger buffer,
/// messages to many peers at once overflow the queue of a slow card, and packets are lost before they leave.
inline constexpr std::size_t send_buffer_bytes = std::size_t{128} << 10;

/// When the key of a direction between two nodes is replaced. AES-GCM is safe for many times as many packets.
struct Rekeying {
    std::uint64_t packets = std::uint64_t{1} << 22;
    Duration after = std::chrono::hours(1);
    /// For tests: called with the key and the nonce of every packet that is encrypted.
    std::function<void(Bytes key, Bytes nonce)> on_use{};
};

struct Options {
    std::string address = "127.0.0.1"; // of this node on the network; numeric IPv4 or IPv6
    std::uint16_t port = 0;            // 0: the system chooses
    bool encrypt = false;              // see seal.hpp
    Rekeying rekeying{};
    std::optional<bool> prefers_aes{}; // over ChaCha20-Poly1305; unset: if the processor has instructions for AES
    std::string network{};             // name of the network; keys are derived from it too
    std::size_t buffer_bytes = std::size_t{4} << 20; // for receiving; a smaller one is a warning
    // A checksum of 32 bits over whole packets, not only over headers and small messages; not needed with encrypt.
    bool checks_all = false;
    std::uint32_t packet_bytes_max = 0;              // 0: as large as the path carries
    bool offload = true;                             // the system cuts bursts into packets and joins them (GSO, GRO)
    std::size_t message_bytes_max = 0;               // 0: 16 MiB, less with more than 16 nodes
    /// A peer that does not answer for so long is gone, unless its host answers; 0: never.
    Duration silence_max = std::chrono::seconds(60);
    /// How often a node asks the next three whether they still listen; 0: never. See reliable::EndpointOptions.
    Duration watch_every = std::chrono::milliseconds(200);
    Duration memory_wait_max = std::chrono::seconds(10); // a peer is gone after a message found no memory for so long
    bool has_alternatives = false; // see pm::Ways
    Faults faults;
};

} // namespace kumi::device::udp
