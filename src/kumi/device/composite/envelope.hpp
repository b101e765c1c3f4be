#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>

namespace kumi::device::composite {

using pm::Node;

/// Counts the messages from one node to another, and wraps.
using Sequence = std::uint32_t;
constexpr bool is_before(Sequence a, Sequence b) noexcept { return static_cast<std::int32_t>(a - b) < 0; }

/// In front of everything that goes over a network: a message is known by its number, so it may come by any way, and
/// twice.
struct Envelope {
    enum class Kind : std::uint8_t {
        message, // the user's
        piece,   // of one: a PieceHead and some of its bytes
        ping,    // to be answered by the way it came
        pong,
        arrived, // every earlier message of the destination's has arrived here
        how_far, // to be answered by that
        deaf,    // the source hears nothing on the network of that number
        hears,   // it may hear again
        left,    // the node of that number has left, says the source, which was to pass on something to it
        leaving, // the source has passed on messages of the destination, and would leave
        done,    // then leave: there will be no more
    };

    Sequence sequence; // of a message, or that a piece is of; else what the kind says
    Node source;
    Node destination; // others pass it on
    Kind kind;
    std::uint8_t hops_left; // how often it may be passed on
    std::uint8_t asks;      // for `arrived`: it is passed on, and kept until then
    std::uint8_t way;       // that a ping tries, and a pong answers: its number among the pinging node's
};
static_assert(sizeof(Envelope) == 16); // messages behind it stay aligned

/// Behind the envelope of a piece.
struct PieceHead {
    std::uint32_t total;  // bytes of the whole message
    std::uint32_t offset; // of this piece in it
};
static_assert(sizeof(PieceHead) == 8);

} // namespace kumi::device::composite
