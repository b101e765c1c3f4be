#pragma once

// Collectives among the members of a set, on bytes; group.hpp adds types. A rank is a position in the set. All
// reductions combine in the order of ranks, so an operation need only be associative.
//
// Which members exchange messages depends only on the number of members and the root, with two exceptions: a large
// broadcast, of which all members learn from the root that it is large, and a large allreduce, in which every member
// exchanges messages with the same members as in a small one. So members that come with different sizes find out, and
// do not wait for each other.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace kumi::group {

using pm::Node;
struct Membership;

/// Combines values: `into` becomes (mine, other), or (other, mine) if the other values come first. `into` may be the
/// same memory as `mine`.
using Combine = base::FunctionRef<void(std::byte* into, const std::byte* mine, const std::byte* other,
                                       std::size_t bytes, bool other_is_first)>;

/// The order in which values are combined.
enum class Order : std::uint8_t {
    tree,    // by rank, with parentheses that depend on the number of members, the root and the size
    by_rank, // ((0, 1), 2), 3 ...: always the same, and slower
};

/// How values are reduced.
struct Reduction {
    Combine combine;
    std::size_t bytes_each; // of one value
    Order order = Order::tree;
    std::shared_ptr<const void> keeps = {}; // what a call that is started uses: what `combine` refers to, own buffers
};

using Parts = std::vector<std::vector<std::byte>>;

Result<void> barrier(Membership& seat, Instant deadline);
Result<void> broadcast(Membership& seat, Node root, MutableBytes values, Instant deadline);
/// `result` is used at the root only. It may be the same memory as `mine`.
Result<void> reduce(Membership& seat, Node root, Bytes mine, MutableBytes result, const Reduction& reduction,
                    Instant deadline);
Result<void> allreduce(Membership& seat, Bytes mine, MutableBytes result, const Reduction& reduction, Instant deadline);
Result<void> gather(Membership& seat, Node root, Bytes mine, MutableBytes all, Instant deadline);
Result<void> scatter(Membership& seat, Node root, Bytes all, MutableBytes mine, Instant deadline);
Result<void> allgather(Membership& seat, Bytes mine, MutableBytes all, Instant deadline);
Result<void> alltoall(Membership& seat, Bytes send, MutableBytes receive, Instant deadline);
/// Combines the values of the ranks up to this one, or before it.
Result<void> scan(Membership& seat, Bytes mine, MutableBytes result, bool is_inclusive, const Reduction& reduction,
                  Instant deadline);

/// Each member has any number of bytes. Parts are by rank.
Result<Parts> gatherv(Membership& seat, Node root, Bytes mine, Instant deadline);
Result<std::vector<std::byte>> scatterv(Membership& seat, Node root, std::span<const Bytes> parts, Instant deadline);
Result<Parts> allgatherv(Membership& seat, Bytes mine, Instant deadline);
Result<Parts> alltoallv(Membership& seat, std::span<const Bytes> parts, Instant deadline);
/// Into memory of the caller: what comes from rank r must have the size of `rooms[r]`.
Result<void> alltoallv(Membership& seat, std::span<const Bytes> parts, std::span<const MutableBytes> rooms,
                       Instant deadline);

/// No member: nothing is sent there, or received from there.
inline constexpr Node no_rank = ~Node{0};
Result<void> sendrecv(Membership& seat, Node to, Bytes mine, Node from, MutableBytes theirs, Instant deadline);

// ---- the same, started: see starting.hpp. Memory must stay until the future is ready; lists of parts are copied.

Future<void> start_barrier(Membership& seat, Instant deadline);
Future<void> start_broadcast(Membership& seat, Node root, MutableBytes values, Instant deadline);
Future<void> start_reduce(Membership& seat, Node root, Bytes mine, MutableBytes result, const Reduction& reduction,
                          Instant deadline);
Future<void> start_allreduce(Membership& seat, Bytes mine, MutableBytes result, const Reduction& reduction,
                             Instant deadline);
Future<void> start_gather(Membership& seat, Node root, Bytes mine, MutableBytes all, Instant deadline);
Future<void> start_scatter(Membership& seat, Node root, Bytes all, MutableBytes mine, Instant deadline);
Future<void> start_allgather(Membership& seat, Bytes mine, MutableBytes all, Instant deadline);
Future<void> start_alltoall(Membership& seat, Bytes send, MutableBytes receive, Instant deadline);
Future<void> start_scan(Membership& seat, Bytes mine, MutableBytes result, bool is_inclusive,
                        const Reduction& reduction, Instant deadline);
Future<Parts> start_gatherv(Membership& seat, Node root, Bytes mine, Instant deadline);
Future<std::vector<std::byte>> start_scatterv(Membership& seat, Node root, std::span<const Bytes> parts,
                                              Instant deadline);
Future<Parts> start_allgatherv(Membership& seat, Bytes mine, Instant deadline);
Future<Parts> start_alltoallv(Membership& seat, std::span<const Bytes> parts, Instant deadline);
Future<void> start_alltoallv(Membership& seat, std::span<const Bytes> parts, std::span<const MutableBytes> rooms,
                             Instant deadline);
Future<void> start_sendrecv(Membership& seat, Node to, Bytes mine, Node from, MutableBytes theirs, Instant deadline);

} // namespace kumi::group
