#pragma once

#include "kumi/base/bytes.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace kumi::device::composite {

using pm::Node;

/// Counts the messages from one node to another, and wraps.
using Sequence = std::uint32_t;
constexpr bool is_before(Sequence a, Sequence b) noexcept { return static_cast<std::int32_t>(a - b) < 0; }

/// In front of everything that goes over a network; an envelope and what is in it are a letter. A message is known by
/// its number, so it may come by any way, and twice.
struct Envelope {
    enum class Kind : std::uint8_t {
        message, // the user's
        piece,   // of one: a PieceHead and some of its bytes
        timed,   // nothing that matters: the source times how long it takes to arrive
        ping,    // to be answered with the same number, by the network or the path that it came by
        pong,
        arrived, // the source has received every message of the destination before this number
        how_far, // to be answered by `arrived`
        deaf,    // the source hears nothing on the network of that number
        hears,   // the source may hear again on the network of that number
        left,    // the node of that number has left or died, says the source, which passes on messages to it
        leaving, // the source has passed on messages of the destination, and would leave
        done,    // the answer to `leaving`: there will be no more
        closed,  // the source takes no more messages, and only passes on those of others
        seek,    // for a path from the source to the destination; the path so far
        found,   // that of the seek of this number, from its end back to its start
        broken,  // the source was to pass on something to the node of that number, and no network joins them any more
        owes,    // the node of that number, which is sought, is joined with the source and owes it an answer
    };

    Sequence sequence; // of a message, or that a piece is of; else what the kind says
    Node source;
    Node destination;
    Kind kind;
    std::uint8_t asks; // for `arrived`: it is passed on, and kept until then
    std::uint8_t hops; // nodes that pass it on; they stand behind the envelope
    std::uint8_t at;   // which of them is to do so next; of a seek: to how many it is passed on, as a power of two
};
static_assert(sizeof(Envelope) == 16); // messages behind it stay aligned

/// The nodes that pass something on, in that order.
using Path = std::vector<Node>;
inline constexpr std::size_t hops_max = 252;

constexpr std::size_t head_bytes(std::size_t hops) noexcept {
    return sizeof(Envelope) + ((hops * sizeof(Node) + 15) & ~std::size_t{15}); // what follows stays aligned
}
inline constexpr std::size_t head_bytes_max = head_bytes(hops_max);

inline Envelope head_of(Bytes letter) noexcept {
    Envelope head{};
    read_value(letter, head);
    return head;
}

/// Puts an envelope and a path to `at`; answers how many bytes they take.
inline std::size_t write_head(std::byte* at, Envelope head, std::span<const Node> path) noexcept {
    const std::size_t bytes = head_bytes(path.size());
    std::memset(at + sizeof head, 0, bytes - sizeof head);
    head.hops = static_cast<std::uint8_t>(path.size());
    std::memcpy(at, &head, sizeof head);
    if (!path.empty()) std::memcpy(at + sizeof head, path.data(), path.size_bytes());
    return bytes;
}

/// Of a letter that is as long as its envelope says.
inline Node hop_of(Bytes letter, std::size_t index) noexcept {
    Node node;
    std::memcpy(&node, letter.data() + sizeof(Envelope) + index * sizeof node, sizeof node);
    return node;
}

/// The path of a letter from its end back to its start.
inline Path reversed_path(const Envelope& head, Bytes letter) {
    Path path;
    for (std::size_t i = head.hops; i > 0; --i) path.push_back(hop_of(letter, i - 1));
    return path;
}

/// Behind the envelope of a piece.
struct PieceHead {
    std::uint32_t total;  // bytes of the whole message
    std::uint32_t offset; // of this piece in it
};
static_assert(sizeof(PieceHead) == 8);

} // namespace kumi::device::composite
