#pragma once

// The packet format. All fields are little-endian, and the size of every packet is a multiple of 8 bytes.
//
//   data packet:  PacketHeader, then records: whole messages one after another, or one piece of a long message, or
//                 the starts of several pieces that follow
//   bare packet:  PacketHeader, then selective acknowledgement: bit i of the words stands for sequence expected + 1 + i
//   report:       a bare packet whose words are numbers of nodes that do not listen any more, as its sender thinks
//   probe:        a bare packet that is filled up with zeros instead
//   fragment:     PacketHeader, FragmentHeader, then a part of the records of a data packet that became too large for
//                 the path after it had been given its sequence
//
// A packet keeps its sequence however often it is sent. Each sending has a transmission number of its own. An
// acknowledgement says which sequences have arrived, and the latest transmission that has arrived. A packet that has
// not arrived, and whose last transmission is earlier than that, is lost (or was overtaken). So losses are found
// without a clock, and a retransmission that is lost again is found in the same way.

#include "kumi/base/bytes.hpp"

#include <bit>
#include <cstdint>

namespace kumi::reliable {

static_assert(std::endian::native == std::endian::little);

using Node = std::uint32_t;

/// Number of a packet or of a transmission. It wraps.
using Sequence = std::uint32_t;
constexpr bool is_before(Sequence a, Sequence b) noexcept { return static_cast<std::int32_t>(a - b) < 0; }

namespace flag {
inline constexpr std::uint8_t data = 1;   // the packet has a sequence and records
inline constexpr std::uint8_t retransmission = 2;  // the packet was sent before
inline constexpr std::uint8_t report = 2; // without `data`: the words are numbers of nodes, not an acknowledgement
inline constexpr std::uint8_t ack_now = 4; // the sender waits: acknowledge at once
inline constexpr std::uint8_t farewell = 8;    // the sender has closed: it accepts nothing and sends nothing any more
inline constexpr std::uint8_t head_checked = 16; // the checksum covers the first summed_head_bytes only
// with `farewell`: the sender has no memory for a message to or from the receiver
inline constexpr std::uint8_t no_memory = 32;
inline constexpr std::uint8_t fragment = 64;    // with `data`: one fragment of a packet that is too large for the path
// without `data`: asks whether a packet of this size passes; `sequence` is the probe's number
inline constexpr std::uint8_t probe = 64;
inline constexpr std::uint8_t probe_answer = 128; // without `data`: the probe with the number `sequence` has arrived
} // namespace flag

struct PacketHeader {
    std::uint64_t token; // of the job
    std::uint32_t checksum; // of the packet or its head, computed with this field zero
    std::uint16_t bytes; // of the packet
    std::uint8_t flags;
    std::uint8_t ack_words; // of selective acknowledgement, in a bare packet
    std::uint32_t source; // nodes and their incarnations
    std::uint32_t destination;
    std::uint32_t source_incarnation;
    std::uint32_t destination_incarnation;
    Sequence sequence;        // of a data packet
    Sequence expected;        // every earlier packet of the destination has arrived at the source
    std::uint32_t credit;     // the destination may send packets up to this total weight
    Sequence transmission;    // of this packet, of whatever kind
    Sequence latest;          // latest transmission of the destination that has arrived at the source
    std::uint32_t held_us;    // how long ago `latest` arrived
};
static_assert(sizeof(PacketHeader) == 56);

/// Precedes every message or piece in a data packet.
struct RecordHeader {
    std::uint32_t bytes;  // of the message
    // whole_message, or the position of this piece in its message, or that of the first start, plus starts_mark
    std::uint32_t offset;
};
inline constexpr std::uint32_t whole_message = 0xFFFF'FFFF;
/// Positions of pieces and of starts are multiples of 8.
inline constexpr std::uint32_t starts_mark = 1;
/// Precedes a fragment of a packet's records. All fragments of a packet have `stride` bytes; the last may have fewer.
struct FragmentHeader {
    std::uint16_t bytes; // of all records of the packet
    std::uint16_t stride;
    std::uint32_t offset;
};
static_assert(sizeof(FragmentHeader) == sizeof(RecordHeader));
/// A packet has at most one piece, after headers of this size.
inline constexpr std::size_t piece_head_bytes = sizeof(PacketHeader) + sizeof(RecordHeader);
static_assert(piece_head_bytes % 32 == 0); // see base::checksum()

/// Follows the RecordHeader of starts; then come `count` starts of start_bytes each, and what fills the packet up. The
/// next `count` pieces begin behind their starts, and lie `stride` bytes apart in the message.
///
/// Starts let a sender send a burst of pieces as one piece of memory, without a copy: the head of each packet takes the
/// place of the piece's first bytes, which have left before.
struct StartsHeader {
    std::uint32_t stride;
    std::uint32_t count;
};
inline constexpr std::uint32_t start_bytes = piece_head_bytes;
constexpr std::uint32_t starts_max(std::size_t packet_bytes) noexcept {
    return static_cast<std::uint32_t>((packet_bytes - piece_head_bytes - sizeof(StartsHeader)) / start_bytes);
}
/// For fewer pieces starts are not worth their packet.
inline constexpr std::uint32_t starts_min = 16;
/// Pieces in packets of these sizes have starts. Smaller packets hold too few, and larger ones are gathered at little
/// cost.
inline constexpr std::uint32_t started_packet_min = 1160, started_packet_max = 2048;
static_assert(starts_max(started_packet_min) >= starts_min);
/// Largest head of a packet. The first fragment of a piece has one more header, and is filled up to whole words of the
/// checksum.
inline constexpr std::size_t head_bytes_max = piece_head_bytes + 32;

/// Which part of a packet its checksum protects. UDP has a checksum of 16 bits over the whole packet, which TCP relies
/// on too. `heads` adds 32 bits over headers and small messages, and costs long messages nothing.
enum class Checked : std::uint8_t { nothing, heads, everything };
inline constexpr std::size_t summed_head_bytes = piece_head_bytes;

constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) & ~std::size_t{7}; }
constexpr std::size_t record_bytes(std::size_t message_bytes) noexcept {
    return sizeof(RecordHeader) + padded(message_bytes);
}

/// Writes a record with a whole message. There must be record_bytes() of room.
inline void write_record(std::byte* at, const Pieces& message) noexcept {
    const RecordHeader record{static_cast<std::uint32_t>(message.size()), whole_message};
    std::memcpy(at, &record, sizeof record);
    // the padding
    if (message.size() % 8 != 0) std::memset(at + record_bytes(message.size()) - 8, 0, 8);
    message.copy_to(at + sizeof record);
}

/// Smallest and largest packet that a path may be set to.
inline constexpr std::uint32_t packet_bytes_min = 512;
inline constexpr std::uint32_t packet_bytes_max = 65'472;
inline constexpr std::uint32_t fragment_bytes_min = packet_bytes_min - piece_head_bytes;

/// Most words of selective acknowledgement in one packet: enough for 3,584 packets after the first missing one.
inline constexpr std::size_t ack_words_max = 56;
static_assert(sizeof(PacketHeader) + ack_words_max * 8 <= packet_bytes_min);

/// Memory that a packet takes in the receiver's socket buffer: the packet and what the system adds.
constexpr std::uint32_t weight_of(std::size_t packet_bytes) noexcept {
    return static_cast<std::uint32_t>(packet_bytes) + 768;
}

/// Why a packet was dropped.
enum class Drop : std::uint8_t {
    truncated,     // shorter than its header says, or than the smallest packet
    foreign,       // of another job
    damaged,       // the checksum is wrong
    misaddressed,  // for another node, or from a node that does not exist
    stale,         // of an earlier incarnation of its sender or receiver
    beyond_window, // further ahead than the window allows
    malformed,     // complete, but its contents contradict each other
    late,          // from a peer that is gone
};
inline constexpr std::size_t drop_causes = 8;
const char* name_of(Drop cause) noexcept;

/// Parses the packet at the front of `bytes`, and checks what needs no state: length, token, and checksum (unless
/// nothing is checked). True: `header` is valid, and `bytes` is cut to the packet. False: `cause` is the reason.
bool parse(Bytes& bytes, std::uint64_t token, Checked checked, PacketHeader& header, Drop& cause) noexcept;

} // namespace kumi::reliable
