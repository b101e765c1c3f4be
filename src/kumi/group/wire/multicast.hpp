#pragma once

// The messages of multicasts: one service of the engine. All fields are little-endian. The receiver checks every field
// before it uses it.
//
// A Cast, and the first Block that one node sends another, are followed by a lead (lead.hpp): the set, then the number
// of multicasts that must be delivered before and, for each, its sequence and the set of members that it concerns, then
// all members if the content is to be taken. The lead is padded to a multiple of 8 bytes. The content follows, or its
// Place. A Cast without a lead is for its receiver alone, and nothing must be delivered before it.

#include "kumi/engine/wire.hpp"
#include "kumi/group/plan/way.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>

namespace kumi::group {

using pm::Node;

/// Each service of groups has one kind of messages for the engine. Its own kinds are in the messages.
inline constexpr std::uint16_t only_kind = 0;

enum class Kind : std::uint32_t {
    cast,    // Cast, [lead], content
    block,   // Block, [lead], data: that block, and the next ones as far as the data goes
    answer,  // Answer, set of those that did not get it, text of what went wrong, values
    placed,  // Cast, [lead], Place: among nodes of one host
    probe,   // Probe, bytes that tell nothing
    probed,  // Probe: the last of a train, sent back
    over,    // Over
    fetch,   // Fetch
    fetched, // Fetched, data
};

/// The name of a multicast: its master, and its number among the multicasts of that master.
struct Name {
    Name() = default;
    Name(Node whose, std::uint64_t number) noexcept : master(whose), sequence(number) {}

    std::uint32_t master = 0;
    std::uint32_t reserved = 0;
    std::uint64_t sequence = 0; // never used again
    friend auto operator<=>(const Name&, const Name&) = default;
};

/// What each member does with the content.
enum class Use : std::uint32_t {
    handler, // calls handler `number`
    take,    // keeps it until the program takes it, with `tag`
    gather,  // runs function `number`; answers of up to `tag` bytes return to the master, which fetches larger ones
    reduce,  // the same, and function `tag` combines the answers
    store,   // writes it into memory; the content begins with a StoreHead, and `number` StorePlaces
};
struct Purpose {
    Use use;
    std::uint32_t number;
    std::uint64_t tag;
};

/// The number of a relay at one node. The answer to that node contains it.
struct RelayId {
    std::uint32_t index;
    std::uint32_t generation;
};

struct Cast {
    Kind kind;
    std::uint32_t lead_bytes; // 0: there is none
    Name name;
    Purpose purpose;
    RelayId relay; // of the sender
    double gap;    // of the tree, as part of a hop
};

/// Where a content lies in the master's heap. It stays there until all members have answered.
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
    // 1: the sender waits for the receiver's answer. 0 without a block: the sender lacks blocks and wants all of them.
    std::uint32_t wants_answer;
    std::uint32_t reserved;
    double gap;
};
inline constexpr std::uint32_t no_block = ~0u;

enum class Brings : std::uint16_t {
    nothing,
    values,
    resignation, // the sender has given up; the receiver takes over the members below it
};
struct Answer {
    Kind kind;
    std::uint32_t set_bytes; // 0: all members got it
    Name name;
    RelayId relay; // of the receiver; none: the receiver finds it by name
    std::uint32_t text_bytes;
    Brings brings;
    std::uint16_t code; // ErrorCode of the text
};
static_assert(sizeof(Answer) == 40);
/// From the master: the multicast will not come; later multicasts wait for `before` instead, if that is not 0. From a
/// node that was asked for blocks: it has none.
struct Over {
    Kind kind;
    std::uint32_t reserved;
    Name name;
    std::uint64_t before; // sequence
};
/// Precedes the answer of one member among gathered values.
struct ValueHead {
    std::uint32_t node;
    std::uint32_t bytes; // with held_flag: the answer does not follow; the member keeps it until the master fetches it
};
inline constexpr std::uint32_t held_flag = 1u << 31;

/// From the master: asks a member for the next part of its answer.
struct Fetch {
    Kind kind;
    std::uint32_t is_unwanted; // 1: the master will not fetch the answer
    Name name;
    std::uint64_t offset;
};
/// A part of an answer that the master has asked for. Data follows.
struct Fetched {
    Kind kind;
    std::uint32_t is_gone; // 1: the member has no such answer
    Name name;
    std::uint64_t offset;
};

/// Precedes the content of a multicast into memory.
struct StoreHead {
    engine::Place to; // in a segment, on all members; unused if there are StorePlaces
    Notice notice;
};
static_assert(sizeof(StoreHead) == 40);
/// Where the content goes on one member. There is one for each member, in the order of nodes.
struct StorePlace {
    std::uint32_t node;
    std::uint32_t segment;
    std::uint64_t offset;
};
static_assert(sizeof(StorePlace) == 16);

/// One message of a train; see probing.hpp.
struct Probe {
    Kind kind;
    std::uint32_t is_last;
    std::uint64_t train;
};

inline constexpr RelayId no_relay{~0u, ~0u};

} // namespace kumi::group
