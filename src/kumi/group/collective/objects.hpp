#pragma once

// Collectives of objects: values that travel as the bytes of an archive, so that each may have another size. Here they
// are bytes; group/objects.hpp adds types.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/group/collective/collectives.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kumi::group {

/// What this member brings to a call: one object, or one for each rank.
struct Given {
    Parts objects;
    std::string refusal = {}; // why it has none; empty: it has
};

/// An object that is combined with others, one by one.
class Folding {
public:
    virtual ~Folding() = default;
    /// Combines it with that of another rank, in the order of ranks. An error if the bytes are no such object; throws
    /// what the operation throws, and nothing else.
    virtual Result<void> combine(const Membership& seat, Node rank, Bytes other) = 0;
    /// Its bytes. An error if it cannot be written.
    virtual Result<std::vector<std::byte>> written() const = 0;
};

/// The rank of this member.
Node rank_of(const Membership& seat) noexcept;
/// The object of that rank cannot be read, and that of this member cannot be written: the exception that is being
/// handled says why.
Error not_an_object(const Membership& seat, Node rank);
Error cannot_be_sent();
/// With the members before it: for what a call finds after its end.
Error error_among(const Membership& seat, const Error& why);

/// The deadline of a call, and whether a thread waits for its future as in a blocking call.
struct Terms {
    Instant deadline = never;
    bool is_waited_for = false;
};

/// The root gives one object.
Future<std::vector<std::byte>> start_broadcast_object(Membership& seat, Node root, Given given, const Terms& terms);
/// The answer is empty at members that are not the root.
Future<Parts> start_gather_objects(Membership& seat, Node root, Given given, const Terms& terms);
Future<Parts> start_allgather_objects(Membership& seat, Given given, const Terms& terms);
/// The root gives one object for each rank.
Future<std::vector<std::byte>> start_scatter_objects(Membership& seat, Node root, Given given, const Terms& terms);
/// Each member gives one object for each rank.
Future<Parts> start_alltoall_objects(Membership& seat, Given given, const Terms& terms);
/// The answer is empty at members that are not the root.
Future<std::vector<std::byte>> start_reduce_objects(Membership& seat, Node root, std::unique_ptr<Folding> folding,
                                                    const Terms& terms);
Future<std::vector<std::byte>> start_allreduce_objects(Membership& seat, std::unique_ptr<Folding> folding,
                                                       const Terms& terms);

} // namespace kumi::group
