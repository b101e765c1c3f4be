#pragma once

// What the members of a set do together, on bytes; group.hpp has types. Ranks are places in the set. All of them
// combine in the order of ranks, so an operation needs only be associative.
//
// Who talks to whom depends on the number of members and the root alone, but in two cases: a large broadcast, of which
// all learn from the root that it is large, and a large allreduce, in which everybody talks to the same members as in a
// small one. So members that come with different sizes find out, and do not wait for each other.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace kumi::group {

using pm::Node;
struct Membership;

/// How values are combined: `into` becomes (mine, other), or (other, mine) if the other ones come first. It may be
/// where `mine` is.
using Combine = base::FunctionRef<void(std::byte* into, const std::byte* mine, const std::byte* other,
                                       std::size_t bytes, bool other_is_first)>;

/// In what order values are combined.
enum class Order : std::uint8_t {
    tree,    // by rank, with parentheses that depend on the number of members, their root and the size
    by_rank, // ((0, 1), 2), 3 ...: always the same, and slower
};

/// Beside the data.
struct Reduction {
    Combine combine;
    std::size_t bytes_each; // of one value
    Order order = Order::tree;
};

using Parts = std::vector<std::vector<std::byte>>;

Result<void> barrier(Membership& seat, Instant deadline);
Result<void> broadcast(Membership& seat, Node root, MutableBytes values, Instant deadline);
/// `result` is used at the root only. It may be where `mine` is.
Result<void> reduce(Membership& seat, Node root, Bytes mine, MutableBytes result, const Reduction& reduction,
                    Instant deadline);
Result<void> allreduce(Membership& seat, Bytes mine, MutableBytes result, const Reduction& reduction, Instant deadline);
Result<void> gather(Membership& seat, Node root, Bytes mine, MutableBytes all, Instant deadline);
Result<void> scatter(Membership& seat, Node root, Bytes all, MutableBytes mine, Instant deadline);
Result<void> allgather(Membership& seat, Bytes mine, MutableBytes all, Instant deadline);
Result<void> alltoall(Membership& seat, Bytes send, MutableBytes receive, Instant deadline);
/// Of ranks up to this one, or before it.
Result<void> scan(Membership& seat, Bytes mine, MutableBytes result, bool is_inclusive, const Reduction& reduction,
                  Instant deadline);

/// Each with as much as it has. Parts are by rank.
Result<Parts> gatherv(Membership& seat, Node root, Bytes mine, Instant deadline);
Result<std::vector<std::byte>> scatterv(Membership& seat, Node root, std::span<const Bytes> parts, Instant deadline);
Result<Parts> allgatherv(Membership& seat, Bytes mine, Instant deadline);
Result<Parts> alltoallv(Membership& seat, std::span<const Bytes> parts, Instant deadline);

} // namespace kumi::group
