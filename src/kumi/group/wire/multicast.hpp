#pragma once

// What multicasts say to each other: messages of one service of the engine. All fields are little-endian, and whatever
// comes is checked before it is believed.
//
// A Cast, and the first Block that one node sends another, have a lead behind them: the set (of a Cast, the part of it
// that the receiver is to care for, itself included; of Blocks all of it), what must be delivered before, as a count
// and, for each, a sequence and the set of members that it concerns; and, of a Cast that is to be taken, all members.
// The lead is filled up to a multiple of 8; then comes the content, or where it lies.

#include "kumi/group/plan/way.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>

namespace kumi::group {

using pm::Node;

/// Each service of groups has one kind of messages for the engine, and tells its own apart by what is in them.
inline constexpr std::uint16_t only_kind = 0;

enum class Kind : std::uint32_t {
    cast,   // Cast, lead, content
    block,  // Block, [lead], data: that block, and the next ones as far as the data goes
    answer, // Answer, set of those that did not get it, text of what went wrong, values
    placed, // Cast, lead, Place: among nodes of one host
    probe,  // Probe, bytes that tell nothing
    probed, // Probe: the last of a train, sent back
    over,   // Over
};

/// A multicast: whose, and the how-manieth.
struct Name {
    Name() = default;
    Name(Node whose, std::uint64_t number) noexcept : master(whose), sequence(number) {}

    std::uint32_t master = 0;
    std::uint32_t reserved = 0;
    std::uint64_t sequence = 0; // never comes again
    friend auto operator<=>(const Name&, const Name&) = default;
};

/// What is to be done with the content at each member.
enum class Use : std::uint32_t {
    handler, // calls handler `number`
    take,    // waits to be taken, with `tag`
    gather,  // runs function `number`; its answers come back, all of them
    reduce,  // the same, put together by function `tag`
};
struct Purpose {
    Use use;
    std::uint32_t number;
    std::uint64_t tag;
};

/// One passing-on of a multicast at one node: comes back in the answer.
struct RelayId {
    std::uint32_t index;
    std::uint32_t generation;
};

struct Cast {
    Kind kind;
    std::uint32_t lead_bytes;
    Name name;
    Purpose purpose;
    RelayId relay; // of the sender
    double gap;    // of the tree, as part of a hop
};

/// A content in the master's heap, which stays there until all have answered.
struct Place {
    std::uint64_t offset;
    std::uint64_t bytes;
};

struct Block {
    Kind kind;
    std::uint32_t lead_bytes; // 0: sent before
    Name name;
    Purpose purpose;
    std::uint64_t bytes; // of the content
    std::uint32_t block_bytes;
    std::uint32_t index; // or no_block: there is a lead, and no data
    std::uint32_t root;  // node
    Way way;
    // 1: the sender waits for the receiver's; 0 without a block: the sender misses some, and wants all of them
    std::uint32_t wants_answer;
    std::uint32_t reserved;
    double gap;
};
inline constexpr std::uint32_t no_block = ~0u;

enum class Brings : std::uint32_t {
    nothing,
    values,
    resignation, // it has given up, and others are to care for those below it
};
struct Answer {
    Kind kind;
    std::uint32_t set_bytes;
    Name name;
    RelayId relay; // of the receiver, or none: it knows by name
    std::uint32_t text_bytes;
    Brings brings;
};
/// From the master: no more of it will come; what was to come after it comes after `before`, if that is not 0. From
/// others, who were asked for blocks: they have none.
struct Over {
    Kind kind;
    std::uint32_t reserved;
    Name name;
    std::uint64_t before; // sequence
};
/// What one member answered, among gathered values.
struct ValueHead {
    std::uint32_t node;
    std::uint32_t bytes;
};

/// One message of a train; see probing.hpp.
struct Probe {
    Kind kind;
    std::uint32_t is_last;
    std::uint64_t train;
};

inline constexpr RelayId no_relay{~0u, ~0u};

} // namespace kumi::group
