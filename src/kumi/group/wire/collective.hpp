#pragma once

// The messages of collectives: a CollectiveHeader, followed by data. One service of the engine.

#include <cstdint>
#include <string>
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
    alltoallv,
    broadcast_object,
    reduce_objects,
    allreduce_objects,
    gather_objects,
    scatter_objects,
    allgather_objects,
    alltoall_objects,
    sendrecv
};

std::string_view name_of(Collective collective) noexcept;
/// One member gives to all, or gets from all. True for numbers that are no collective.
bool has_root(Collective collective) noexcept;
/// For people: "broadcast with root 1".
std::string describe_call(std::uint8_t collective, std::uint32_t root);

enum class MessageKind : std::uint8_t {
    first, // a message, or its beginning
    more,  // the next part of a message
    ready, // the sender has a message and waits for `go`
    go,    // the receiver is ready for the message
    drop,  // the receiver does not want the message
    // text: the sender's call has failed and sends no more; came_with: the mismatch that was the cause, or 0; step: the
    // ErrorCode
    trouble,
    taken, // carries the count `taken` only
    ask,   // the sender is in this call and waits for the receiver; bytes: the sender's state (deadlock.hpp)
    // the answer of a member that is blocked too; bytes: the asking member's state, and its own as the upper half
    stuck,
    // came_with: the member that began the chase; root: the member that the beginner waits for; bytes: the beginner's
    // state, and the receiver's as the upper half
    chase,
    // text: the sender's call has failed because members made different calls; came_with: the number of the mismatch;
    // step: the ErrorCode; root: the number of the set's barrier that the sender waits for, or else arrives at next
    mismatch,
};

/// Precedes the data of each message. All fields are little-endian.
struct CollectiveHeader {
    std::uint64_t key;       // of the set
    std::uint32_t serial;    // of the call, among all calls of the sender
    std::uint32_t taken;     // total cost of what the sender has received from the receiver; wraps
    std::uint64_t bytes;     // of the message
    std::uint64_t came_with; // bytes that the sender's call is about
    std::uint32_t root;      // rank
    std::uint16_t step;      // of the call; wraps
    std::uint8_t collective; // a Collective, unchecked
    MessageKind kind;
};
static_assert(sizeof(CollectiveHeader) == 40);

} // namespace kumi::group
