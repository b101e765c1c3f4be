#pragma once

// What goes over the wire. All fields little-endian, all packets multiples of 8 bytes.
//
//   data packet:  PacketHeader, then records: whole messages one behind the other, or one piece of a long message
//   bare packet:  PacketHeader, then selective acknowledgement: bit i of the words stands for sequence expected + 1 + i
//   probe:        a bare packet that is filled up with zeros instead
//   part:         PacketHeader, PartHeader, then so much of the records of a data packet that has become too large
//                 for the path
//
// A packet keeps its sequence however often it is sent; each sending has a transmission number of its own. An
// acknowledgement says which sequences have arrived and the latest transmission that has: a packet whose own
// transmission is earlier, and that has not arrived, is lost (or overtaken). No clock is needed to know it, and a
// repair that is lost again is found out the same way.

#include "kumi/base/bytes.hpp"

#include <bit>
#include <cstdint>

namespace kumi::reliable {

static_assert(std::endian::native == std::endian::little);

using Node = std::uint32_t;

/// Counts packets or transmissions, and wraps.
using Sequence = std::uint32_t;
constexpr bool is_before(Sequence a, Sequence b) noexcept { return static_cast<std::int32_t>(a - b) < 0; }

namespace flag {
inline constexpr std::uint8_t data = 1;   // has a sequence and records
inline constexpr std::uint8_t again = 2;  // was sent before
inline constexpr std::uint8_t please = 4; // acknowledge at once: the sender waits for it
inline constexpr std::uint8_t bye = 8;    // the sender closes; it takes nothing any more and has nothing to send
inline constexpr std::uint8_t head_checked = 16; // the checksum is of the first summed_head_bytes only
inline constexpr std::uint8_t starved = 32;      // with `bye`: the sender has no memory for what it is sent
inline constexpr std::uint8_t part = 64;    // with `data`: a part of a packet that is too large for the path
// without `data`: does a packet of this size pass? `sequence` is the probe's number
inline constexpr std::uint8_t probe = 64;
inline constexpr std::uint8_t probed = 128; // without `data`: the probe of that number has arrived
} // namespace flag

struct PacketHeader {
    std::uint64_t token; // the job's
    std::uint32_t checksum; // of the packet or its head, with this field zero
    std::uint16_t bytes; // of the packet
    std::uint8_t flags;
    std::uint8_t ack_words; // of selective acknowledgement, in a bare packet
    std::uint32_t source; // nodes, and the lives that they are in
    std::uint32_t destination;
    std::uint32_t source_incarnation;
    std::uint32_t destination_incarnation;
    Sequence sequence;        // of a data packet
    Sequence expected;        // every earlier one of the destination's has arrived here
    std::uint32_t credit;     // the destination may send packets to this total weight
    Sequence transmission;    // of this packet, whatever it carries
    Sequence latest;          // transmission of the destination's that has arrived here
    std::uint32_t held_us;    // how long ago `latest` arrived
};
static_assert(sizeof(PacketHeader) == 56);

/// In front of every message or piece in a data packet.
struct RecordHeader {
    std::uint32_t bytes;  // of the message
    std::uint32_t offset; // whole_message, or where in its message this piece belongs
};
inline constexpr std::uint32_t whole_message = 0xFFFF'FFFF;
/// In front of a part of a packet's records. All parts of a packet have `stride` bytes, but for the last.
struct PartHeader {
    std::uint16_t bytes; // of all records
    std::uint16_t stride;
    std::uint32_t offset;
};
static_assert(sizeof(PartHeader) == sizeof(RecordHeader));
/// A piece is alone in its packet, behind this much.
inline constexpr std::size_t piece_head_bytes = sizeof(PacketHeader) + sizeof(RecordHeader);
static_assert(piece_head_bytes % 32 == 0); // see base::checksum()
/// What the head of a packet takes at most: the first part of a piece has one header more, and so much that it is whole
/// words of a checksum.
inline constexpr std::size_t head_bytes_max = piece_head_bytes + 32;

/// What of a packet is protected by its checksum. UDP has a sum of its own over all of it, of 16 bits: what TCP relies
/// on too. `heads` adds 32 bits over headers and small messages, and nothing to the cost of long messages.
enum class Checked : std::uint8_t { nothing, heads, everything };
inline constexpr std::size_t summed_head_bytes = piece_head_bytes;

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }
constexpr std::size_t record_bytes(std::size_t message_bytes) noexcept {
    return sizeof(RecordHeader) + padded(message_bytes);
}

/// Writes a whole message behind its header; there are record_bytes() of room.
inline void write_record(std::byte* at, const Pieces& message) noexcept {
    const RecordHeader record{static_cast<std::uint32_t>(message.size()), whole_message};
    std::memcpy(at, &record, sizeof record);
    // what the last word has too much
    if (message.size() % 8 != 0) std::memset(at + record_bytes(message.size()) - 8, 0, 8);
    message.copy_to(at + sizeof record);
}

/// Smallest and largest packet that a path may be set to.
inline constexpr std::uint32_t packet_bytes_min = 512;
inline constexpr std::uint32_t packet_bytes_max = 65'472;
inline constexpr std::uint32_t part_bytes_min = packet_bytes_min - piece_head_bytes;

/// Words of selective acknowledgement in one packet at most: for 3,584 packets behind the first that is missing.
inline constexpr std::size_t ack_words_max = 56;
static_assert(sizeof(PacketHeader) + ack_words_max * 8 <= packet_bytes_min);

/// What a packet takes of its receiver's memory while it waits there: itself, and what the system adds.
constexpr std::uint32_t weight_of(std::size_t packet_bytes) noexcept {
    return static_cast<std::uint32_t>(packet_bytes) + 768;
}

/// Why a packet was dropped.
enum class Drop : std::uint8_t {
    truncated,     // shorter than it says, or than a packet can be
    foreign,       // not of this job
    damaged,       // the checksum is wrong
    misaddressed,  // meant for another node, or from one that does not exist
    stale,         // of an earlier life of its sender or receiver
    beyond_window, // further ahead than the sender was allowed
    malformed,     // whole, but makes no sense
    late,          // from a node that is gone
};
inline constexpr std::size_t drop_causes = 8;
const char* name_of(Drop cause) noexcept;

/// Reads and checks everything about `bytes` that needs no state: length, token, checksum (unless nothing is checked).
/// True: `header` is sound and `bytes` is cut to the packet. False: `cause` says why not.
bool parse(Bytes& bytes, std::uint64_t token, Checked checked, PacketHeader& header, Drop& cause) noexcept;

} // namespace kumi::reliable
