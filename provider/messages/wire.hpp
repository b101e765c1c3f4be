#pragma once

// What endpoints say to each other, as messages of an engine's service.
//
//   sender                              receiver
//   message {Head} content        ->                       up to eager_bytes_max
//   offer {Head, length}          ->                       longer content stays at the sender
//                                 <-    accept             a receive matches: so many bytes of it
//   piece {offset} content...     ->                       into place
//                                 <-    delivered          the sender has asked to be told; or the receiver refuses
//   aborted                       ->                       instead of more pieces: the sender's endpoint is closed
//
// Messages and offers of a node arrive in order, and are matched in that order.

#include <cstdint>

namespace kumi::provider {

/// Numbers of kinds within the service.
enum MessageKind : std::uint16_t { message_kind, offer_kind, accept_kind, piece_kind, delivered_kind, aborted_kind };

/// Bits of Head::flags.
enum HeadFlag : std::uint16_t {
    is_tagged = 1,
    has_data = 2, // that the receiver's completion brings
    wants_delivered = 4
};

/// No send waits for an answer.
inline constexpr std::uint32_t no_send = 0xffffffff;

struct Head {
    std::uint8_t to;   // number of an endpoint of the receiver's process
    std::uint8_t from; // and of the sender's
    std::uint16_t flags;
    std::uint32_t send; // the sender's number for it, or no_send
    std::uint64_t tag;
    std::uint64_t data;
};
static_assert(sizeof(Head) == 24);

struct Offer {
    Head head;
    std::uint64_t length;
};

struct Accept {
    std::uint32_t send;
    std::uint32_t arrival; // the receiver's number for it
    std::uint64_t bytes;   // wanted: the receive may be shorter than the content
};

struct Piece {
    std::uint32_t arrival;
    std::uint32_t reserved;
    std::uint64_t offset;
};

struct Delivered {
    std::uint32_t send;
    std::int32_t error; // errno; 0: it is where it was to be
};

struct Aborted {
    std::uint32_t arrival;
};

} // namespace kumi::provider
