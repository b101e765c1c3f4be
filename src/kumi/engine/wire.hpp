#pragma once

// What engines say to each other. Every message starts with a Header; all fields are little-endian. Whatever comes from
// the wire is checked before it is believed: sizes, numbers, places in memory.
//
// Requests and replies. A request is answered for, sooner or later, by the count of requests handled that every header
// carries back: that is its sender's credit, and a put is complete when it is counted. No node has more than
// requests_max requests to another under way, so what a node may have to answer for is bounded, and answers always find
// room. Large requests have a window of bytes, too (sending/byte_windows.hpp), so what a node may have to keep is
// bounded for all nodes together.
//
// Pressure. A request that handlers sent and that had to wait for room says how much waited at its sender then, from 0
// to pressure_max. A node with much to send holds requests back, those of little pressure first; requests of
// pressure_max are never held back. So handlers that forward to a slow node are slowed down, and cycles of them never
// block each other (sending/outbox.hpp).

#include "kumi/base/bytes.hpp"
#include "kumi/engine/memory/words.hpp"

#include <cstdint>
#include <cstring>

namespace kumi::engine {

/// What a message is for. Behind the engine's own kinds each service has a range of them, and handlers of the program
/// come last.
enum class Kind : std::uint16_t {
    credit,  // nothing but the header
    please,  // the same, and asks for one
    message, // of the program, without a handler's name: Job::on_message()
    nudge,   // look at your flags
    forwarded, // a message as above that a handler sent
    taken,     // Taken: how much of the messages above, and of large requests, has been handled
    // The service of barriers.
    step = 64,    // BarrierStep
    host_arrived, // HostArrived: all nodes of a host have come to a barrier, tells its first node
    hopeless,     // Hopeless: a barrier lacks a node that is lost; told to those that hear from the sender there
    // The service of calls.
    ask = 80,    // Ask, arguments; answered by answer
    answer,      // Done, answer; value 1: most of it came in parts
    ask_part,    // CallPart, data: part of the arguments of an ask that follows
    answer_part, // CallPart, data: part of an answer that follows
    // The service of operations.
    done = 96, // Done: an operation is complete
    failed,    // Failed, text: an operation, or a request without one, was refused
    // The service of remote memory.
    put = 112,   // Put, data
    put_strided, // PutStrided, blocks one after the other
    get,         // Get; answered by got
    got,         // Got, data
    atomic,      // AtomicRequest; answered by done
    copy,        // Copy; answered by done
    // The service of rendezvous.
    want = 128, // Want: the sender is ready to take what is offered under a key
    withdraw,   // Withdraw: it is not any more; answered by withdrawn
    withdrawn,  // Withdraw: nothing is sent for that any more
    // Services of other layers.
    first_of_layers = 144,
    first_handler = 1024,
};

struct Header {
    std::uint16_t kind;
    std::uint16_t handled; // requests of the receiver's, in all, that the sender has handled
    // 0: no request. Otherwise the lowest bit is set, the highest are the pressure, and the rest is a number of
    // the thread that sent the request, which returns with a refusal. Requests are counted as handled.
    std::uint32_t is_request;
};
static_assert(sizeof(Header) == 8);

/// The header of a message, which has one.
inline Header header_in(Bytes message) noexcept {
    Header header;
    std::memcpy(&header, message.data(), sizeof header);
    return header;
}

inline constexpr std::uint32_t pressure_max = 7;
inline constexpr std::uint32_t pressure_shift = 29; // in Header::is_request

constexpr std::uint32_t pressure_of(const Header& header) noexcept { return header.is_request >> pressure_shift; }
/// The number of the thread that sent a request.
constexpr std::uint32_t thread_of(const Header& header) noexcept {
    return (header.is_request & ((1u << pressure_shift) - 1)) >> 1;
}
/// Stands for a thread in requests that belong to an operation with a number: whatever becomes of them, the operation
/// tells.
inline constexpr std::uint32_t no_thread = (1u << (pressure_shift - 1)) - 1;

/// Requests without pressure that one node may have under way to another.
inline constexpr std::uint32_t requests_max = 128;
/// Each step of pressure may have so many more under way.
inline constexpr std::uint32_t requests_per_pressure = 8;

/// Bytes of arguments and payload that a request has at most, and of what comes before them: a header and a head.
inline constexpr std::size_t request_bytes_max = 256 << 10;
inline constexpr std::size_t head_bytes_max = 256;

/// Data travels in messages of this size at most: small ones from elsewhere get their turn between two of them. With
/// the heads of all layers before it, such a message fits into one UDP packet where packets may be that large, and into
/// one burst where they may not.
inline constexpr std::size_t chunk_bytes = 56 << 10;

/// Memory of the receiver's: in a segment, or where something is expected to land (`segment` has landing_bit).
struct Place {
    std::uint32_t segment;
    std::uint32_t generation; // of a landing
    std::uint64_t offset;
};
inline constexpr std::uint32_t landing_bit = 1u << 31;
/// In the number of a segment: memory that existed before its node exposed it. Such a number is its node's own.
inline constexpr std::uint32_t exposed_bit = 1u << 30;

/// An operation that the sender waits for.
struct OperationId {
    std::uint32_t index;
    std::uint32_t generation;
    friend bool operator==(const OperationId&, const OperationId&) = default;
};

struct Put {
    OperationId operation; // the sender's, to be told of if it fails; or none
    Place to;
    Notice notice;
};
struct PutStrided {
    Place to;
    Notice notice;
    std::uint64_t block_bytes;
    std::int64_t stride;
};
struct Get {
    OperationId operation;
    Place from;
    std::uint64_t bytes; // of one block
    std::uint64_t count; // of blocks
    std::int64_t stride;
    std::uint64_t position; // of the answer, in what the asker puts together
};
struct Got {
    OperationId operation;
    std::uint64_t position;
};
struct AtomicRequest {
    OperationId operation;
    Place word;
    Atomic what;
};
struct Copy {
    OperationId operation;
    Place from;
    std::uint32_t target; // node
    std::uint32_t reserved;
    Place to;
    std::uint64_t bytes;
    Notice notice;
};
struct Done {
    OperationId operation;
    std::uint64_t value;
};
struct Failed {
    OperationId operation; // or none
    std::uint32_t code;    // an ErrorCode, unchecked
    std::uint32_t reserved;
};
/// Bytes that have been handled, in all: of plain messages that threads of the program sent, of those that handlers
/// sent, and of large requests.
struct Taken {
    std::uint64_t bytes[3];
};
struct HostArrived {
    std::uint32_t sequence;
    std::uint32_t reserved;
};
/// For a set of some nodes, its members follow: sorted, 4 bytes each.
struct Hopeless {
    std::uint64_t set;
    std::uint32_t sequence; // and all after it
    std::uint32_t lost;     // node
};
struct Want {
    std::uint64_t key;
    Place to;
    std::uint64_t bytes;
    OperationId operation; // the taker's, to be told how much has been sent
};
struct Withdraw {
    std::uint64_t key;
    OperationId operation; // of the Want
};
struct Ask {
    OperationId operation;
    std::uint32_t function;
    std::uint32_t has_parts; // 1: most of the arguments came in parts
};
/// Large arguments and answers are sent in parts, from the first byte to the last.
struct CallPart {
    OperationId operation; // of the node that asks
    std::uint64_t bytes;   // of the whole
    std::uint64_t offset;  // of this part
};

inline constexpr OperationId no_operation{~0u, ~0u};
/// Stands for a request without an operation, in a refusal: the sender's thread.
inline constexpr OperationId request_of_thread(std::uint32_t thread) noexcept {
    return thread == 0 ? no_operation : OperationId{thread, no_operation.generation};
}

} // namespace kumi::engine
