#pragma once

// Collectives among the members of a set: calls that all members make. A set is all that is needed; nothing is created
// or agreed on beforehand, and nodes outside the set take no part.
//
//     auto group = job->group(Set{1, 4, 6, 7});                         // at each of these nodes
//     const auto total = group->allreduce(mine, kumi::group::sum);
//
// Matching. Members make the same calls on equal sets in the same order. Calls on different sets are independent of
// each other, but a thread that waits in one call cannot make the next: with one thread per node, calls on sets with
// common members must be in the same order too.
//
// Operations combine two values into one and must be associative. Values are always combined in the order of ranks, so
// an operation need not be commutative. The parentheses depend only on the number of members, the root and the size:
// equal calls give equal results, and an allreduce gives the same bits at all members. With Order::by_rank the
// parentheses are ((0, 1), 2) and so on in all calls and for all sizes; that takes longer. Operations run one at a
// time, on the thread that makes progress, and must not call the engine. An exception that an operation throws is an
// error at all members.
//
// Values are trivially copyable and are sent as they are in memory: many in a span, a vector or an array, or one in a
// variable, as in broadcast(0, step). Where values are combined, `mine` and the result
// may be the same array; so may both arrays of alltoall(), which then copies one. Other arrays must not overlap.
//
// Errors name the set and the node that is the cause: a node that has left, that did not arrive before the deadline,
// that came with another size, or that made another call. Members that depend on that node get the error; others may
// have finished (the root of a broadcast does not wait). After an error the results are undefined. The set can be used
// again if all members make the same calls afterwards: messages that are left of the failed call are not mistaken for
// messages of a later one. The set cannot be used again if members made different calls (other than in size), or one
// made none. Two roots of a broadcast may both have returned, because a root does not wait. So messages for a call that
// this node has never made are reported when its job ends, and its process does not exit with status 0.
//
// Wrong calls. A call in a handler, a call while another thread is in one on the same set (both ErrorCode::misuse), and
// a root or a neighbour that is no rank (ErrorCode::not_found) are errors, and the call is not made. After a deadline
// that has passed (ErrorCode::timed_out) the call was made, and has failed: the call that follows is the next one, here
// and at the other members, also if it is the same call again; barrier() apart.
//
// Running ahead. A member whose part is done returns, and may be ahead of each other member by Windows::window_bytes;
// then it waits.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/collectives.hpp"
#include "kumi/group/operations.hpp"
#include "kumi/group/set.hpp"
#include "kumi/group/starting.hpp"
#include "kumi/group/typed.hpp"

#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::group {

class Objects;

/// A member's view of its set. Copies refer to the same set. After the job has ended, calls are errors. One thread at a
/// time may be in a call.
class Group {
public:
    explicit Group(std::shared_ptr<Membership> seat) noexcept : seat_(std::move(seat)) {}

    /// The rank of this node.
    Node rank() const noexcept;
    Node size() const noexcept;
    const Set& set() const noexcept;

    /// Arrives and waits for all members. It is the barrier of the set, whichever call arrives at it: on all nodes it
    /// is Job::barrier(), on others what Job::arrive(members) begins. After ErrorCode::timed_out this node has arrived
    /// all the same, and the next barrier() on the set goes on waiting.
    Result<void> barrier(Instant deadline = never) { return group::barrier(*seat_, deadline); }

    /// All members get the root's values.
    template <Values Range>
    Result<void> broadcast(Node root, Range&& values, Instant deadline = never)
        requires RoomFor<Range, ValueOf<Range>>
    {
        return group::broadcast(*seat_, root, by_bytes::room(values), deadline);
    }

    /// Combines the values at equal indices; the root gets the result. Elsewhere `result` is not used and may be empty.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> reduce(Node root, const Mine& mine, Result_&& result, const Operation& operation,
                        Instant deadline = never, Order order = Order::tree) {
        const auto combine = by_bytes::combining<ValueOf<Mine>>(operation);
        return group::reduce(*seat_, root, by_bytes::bytes(mine), by_bytes::room(result),
                             {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }
    /// The same, and all members get the result.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> allreduce(const Mine& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                           Order order = Order::tree) {
        const auto combine = by_bytes::combining<ValueOf<Mine>>(operation);
        return group::allreduce(*seat_, by_bytes::bytes(mine), by_bytes::room(result),
                                {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }
    /// The same for one value.
    template <OneValue T, OperationOn<T> Operation>
    Result<T> allreduce(const T& mine, const Operation& operation, Instant deadline = never,
                        Order order = Order::tree) {
        T result = mine;
        if (auto done = allreduce(std::span(&mine, 1), std::span(&result, 1), operation, deadline, order); !done)
            return done.error();
        return result;
    }

    /// The same for any number of values, whose combinations are the result.
    template <ManyValues Mine, OperationOn<ValueOf<Mine>> Operation>
    Result<std::vector<ValueOf<Mine>>> allreduce(const Mine& mine, const Operation& operation, Instant deadline = never,
                                                 Order order = Order::tree) {
        std::vector<ValueOf<Mine>> result(std::size(mine));
        if (auto done = allreduce(mine, result, operation, deadline, order); !done) return done.error();
        return result;
    }

    /// The root gets the values of all members, equally many from each, by rank. Elsewhere `all` is not used.
    template <Values Mine, RoomFor<ValueOf<Mine>> All>
    Result<void> gather(Node root, const Mine& mine, All&& all, Instant deadline = never) {
        return group::gather(*seat_, root, by_bytes::bytes(mine), by_bytes::room(all), deadline);
    }
    /// The inverse of gather(): each member gets its part of the root's values.
    template <Values All, RoomFor<ValueOf<All>> Mine>
    Result<void> scatter(Node root, const All& all, Mine&& mine, Instant deadline = never) {
        return group::scatter(*seat_, root, by_bytes::bytes(all), by_bytes::room(mine), deadline);
    }
    /// As gather(), and all members get the result.
    template <Values Mine, RoomFor<ValueOf<Mine>> All>
    Result<void> allgather(const Mine& mine, All&& all, Instant deadline = never) {
        return group::allgather(*seat_, by_bytes::bytes(mine), by_bytes::room(all), deadline);
    }
    /// Part r of `send` goes to rank r, into the part of `receive` with the sender's rank. All parts have the same
    /// size.
    template <Values Send, RoomFor<ValueOf<Send>> Receive_>
    Result<void> alltoall(const Send& send, Receive_&& receive, Instant deadline = never) {
        return group::alltoall(*seat_, by_bytes::bytes(send), by_bytes::room(receive), deadline);
    }

    /// Combines the values of the ranks up to this member's own.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> scan(const Mine& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                      Order order = Order::tree) {
        const auto combine = by_bytes::combining<ValueOf<Mine>>(operation);
        return group::scan(*seat_, by_bytes::bytes(mine), by_bytes::room(result), true,
                           {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }
    /// Combines the values of the ranks before this member's own. At rank 0 the result is not changed.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> exclusive_scan(const Mine& mine, Result_&& result, const Operation& operation,
                                Instant deadline = never, Order order = Order::tree) {
        const auto combine = by_bytes::combining<ValueOf<Mine>>(operation);
        return group::scan(*seat_, by_bytes::bytes(mine), by_bytes::room(result), false,
                           {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }

    // ---- each member has any number of values; parts are by rank

    /// The result is empty at members that are not the root.
    template <Values Mine>
    Result<std::vector<std::vector<ValueOf<Mine>>>> gatherv(Node root, const Mine& mine, Instant deadline = never) {
        return by_bytes::typed<ValueOf<Mine>>(group::gatherv(*seat_, root, by_bytes::bytes(mine), deadline));
    }
    /// `parts` is a range of ranges and is used at the root only.
    template <class List>
        requires ManyValues<PartOf<List>> Result<std::vector<ValueOf<PartOf<List>>>>
        scatterv(Node root, const List& parts, Instant deadline = never) {
            const auto mine = group::scatterv(*seat_, root, by_bytes::list(parts), deadline);
            if (!mine) return mine.error();
            return by_bytes::typed<ValueOf<PartOf<List>>>(*mine);
        }
    template <Values Mine>
    Result<std::vector<std::vector<ValueOf<Mine>>>> allgatherv(const Mine& mine, Instant deadline = never) {
        return by_bytes::typed<ValueOf<Mine>>(group::allgatherv(*seat_, by_bytes::bytes(mine), deadline));
    }
    /// `parts` has one part for each rank, this member's own included.
    template <class List>
        requires ManyValues<PartOf<List>> Result<std::vector<std::vector<ValueOf<PartOf<List>>>>>
        alltoallv(const List& parts, Instant deadline = never) {
            return by_bytes::typed<ValueOf<PartOf<List>>>(group::alltoallv(*seat_, by_bytes::list(parts), deadline));
        }

    /// The same into arrays of the program, one for each rank, as large as what that member sends: otherwise an error.
    /// Nothing is copied on the way.
    template <class List, class Rooms>
        requires(ManyValues<PartOf<List>>&& RoomFor<PartOf<Rooms>, ValueOf<PartOf<List>>>)
    Result<void> alltoallv(const List& parts, Rooms&& rooms, Instant deadline = never) {
        return group::alltoallv(*seat_, by_bytes::list(parts), by_bytes::rooms(rooms), deadline);
    }

    // ---- neighbours

    /// Each member sends to one rank and receives from one, such as the next and the previous one of a row; it may be
    /// its own rank. All members make the call, and a member that is sent to names the sender as its `from`. With
    /// kumi::no_rank nothing is sent, or received: at the ends of the row. `theirs` has the size that the other member
    /// sends.
    template <Values Mine, RoomFor<ValueOf<Mine>> Theirs>
    Result<void> sendrecv(Node to, const Mine& mine, Node from, Theirs&& theirs, Instant deadline = never) {
        return group::sendrecv(*seat_, to, by_bytes::bytes(mine), from, by_bytes::room(theirs), deadline);
    }

    // ---- other forms of these calls

    /// Calls that do not wait and return futures, by the rules of starting.hpp: group.start().barrier().
    Starter start() const noexcept { return Starter(seat_); }
    /// Values of any type that functions take, such as strings: group.objects().gather(0, text). Requires
    /// <kumi/functions.hpp>.
    Objects objects() const noexcept;

private:
    std::shared_ptr<Membership> seat_;
};

} // namespace kumi::group
