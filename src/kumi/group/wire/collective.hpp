#pragma once

// What the members of a set send each other in a collective: a CollectiveHeader, and data behind it. Messages of one
// service of the engine.

#include <cstdint>
#include <string_view>

namespace kumi::group {

/// The calls that members make together.
enum class Collective : std::uint8_t {
    barrier,
    broadcast,
    reduce,
    allreduce,
    gather,
    scatter,
    allgather,
    alltoall,
    scan,
    exclusive_scan,
    gatherv,
    scatterv,
    allgatherv,
    alltoallv
};

std::string_view name_of(Collective collective) noexcept;

enum class MessageKind : std::uint8_t {
    first,   // a message, or the beginning of one
    more,    // the next part of it
    ready,   // a message is to come, and waits for `go`
    go,      // the receiver is ready for it
    drop,    // the receiver does not want it
    trouble, // text: there will be no more of this call's; came_with: the mismatch that was the cause, if one was
    taken,   // nothing but the count
    ask,     // the sender is in this call and waits for the receiver; bytes: its state (deadlock.hpp)
    // the answer of a member that is blocked too; bytes: the asking member's state, and its own as the upper half
    stuck,
    // came_with: the member that began it; root: whom that one waits for; bytes: its state, and the receiver's as the
    // upper half
    chase,
    mismatch, // text: the sender's call has failed, since members have made different calls; came_with: which mismatch
};

/// What members send to each other, before data. All fields little-endian.
struct CollectiveHeader {
    std::uint64_t key;       // of the set
    std::uint32_t serial;    // of the call, among all of its member's
    std::uint32_t taken;     // cost of what the sender has received of the receiver's, in all; wraps
    std::uint64_t bytes;     // of the message
    std::uint64_t came_with; // bytes that the sender's call is about
    std::uint32_t root;      // rank
    std::uint16_t step;      // of the call; wraps
    std::uint8_t collective; // a Collective, unchecked
    MessageKind kind;
};
static_assert(sizeof(CollectiveHeader) == 40);

} // namespace kumi::group
