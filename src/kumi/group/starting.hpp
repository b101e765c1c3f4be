#pragma once

// Collectives that do not wait: group.start() has each call of group.hpp in a form that returns a future.
//
//     auto total = group.start().allreduce(mine, result, kumi::group::sum);
//     compute();                                            // the call goes on meanwhile
//     total.get();                                          // now `result` has the sums
//
// Progress. The thread that makes progress (a thread that waits in the engine, or the background thread) makes the
// steps of the call; no thread has to wait for it. Operations are copied, and run there.
//
// Memory. Buffers of the program must stay, and must not be used, until the future is ready. Temporary arrays are
// refused at compile time. Dropping the future, or Future::cancel(), does not cancel the call: buffers are in use until
// the call has ended, so a program that drops the future cannot know when they are free.
//
// Order. Calls on one set, started or blocking, are made one after the other in the order in which the program makes
// them, and their futures become ready in that order. A member may start the next call before the previous one has
// ended, here or at another member: up to 256 calls on a set are under way, then start() waits (in a handler: an error,
// ErrorCode::too_large). A blocking call waits for those that were started before it. Calls on different sets do not
// wait for each other.
//
// Handlers. A handler, and what is given to then(), may start calls. While a thread is in a blocking call on a set,
// others cannot start calls on it (ErrorCode::misuse): the members would not have the same order.
//
// Deadlines. The deadline is that of the call: the call fails with ErrorCode::timed_out, and members that need this one
// are told. A call whose deadline passes before its turn has come is ready then, before the calls that it waits for.
// The deadline of Future::get() is that of the thread: the call goes on.
//
// Failures are those of blocking calls (group.hpp): a member that has left or is lost, a different call or size at
// another member, an operation that throws. Each call has its own outcome: the next one on the set is made after a
// failure too. At the end of the job the calls that are under way have some seconds to end; then their futures have
// ErrorCode::ended.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/group/collective/collectives.hpp"
#include "kumi/group/operations.hpp"
#include "kumi/group/typed.hpp"

#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::group {

class ObjectStarter;

/// What is no temporary array: its memory may stay.
template <class Range>
inline constexpr bool is_span = false;
template <class T, std::size_t extent>
inline constexpr bool is_span<std::span<T, extent>> = true;
template <class Range>
concept Staying = std::is_lvalue_reference_v<Range> || is_span<std::remove_cvref_t<Range>>;
template <class Range>
concept StayingValues = Values<Range> && Staying<Range>;
template <class Range, class T>
concept StayingRoom = RoomFor<Range, T> && Staying<Range>;

/// Starts collectives of a set. The calls are those of Group.
class Starter {
public:
    explicit Starter(std::shared_ptr<Membership> seat) noexcept : seat_(std::move(seat)) {}

    Future<void> barrier(Instant deadline = never) { return start_barrier(*seat_, deadline); }

    template <class Range>
        requires StayingRoom<Range, ValueOf<Range>>
    Future<void> broadcast(Node root, Range&& values, Instant deadline = never) {
        return start_broadcast(*seat_, root, by_bytes::room(values), deadline);
    }

    template <StayingValues Mine, StayingRoom<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Future<void> reduce(Node root, Mine&& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                        Order order = Order::tree) {
        return start_reduce(*seat_, root, by_bytes::bytes(mine), by_bytes::room(result),
                            by_bytes::reduction<ValueOf<Mine>>(operation, order), deadline);
    }
    template <StayingValues Mine, StayingRoom<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Future<void> allreduce(Mine&& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                           Order order = Order::tree) {
        return start_allreduce(*seat_, by_bytes::bytes(mine), by_bytes::room(result),
                               by_bytes::reduction<ValueOf<Mine>>(operation, order), deadline);
    }
    /// One value, which is copied; the result is the future's.
    template <OneValue T, OperationOn<T> Operation>
    Future<T> allreduce(const T& mine, const Operation& operation, Instant deadline = never,
                        Order order = Order::tree) {
        auto reduction = by_bytes::reduction<T>(operation, order);
        const auto kept = std::make_shared<std::pair<T, std::shared_ptr<const void>>>(mine, reduction.keeps);
        reduction.keeps = kept; // the call owns the value: it goes on when the future is dropped or cancelled
        const std::span<T> place(&kept->first, 1);
        return start_allreduce(*seat_, by_bytes::bytes(place), by_bytes::room(place), reduction, deadline)
            .then([kept](Result<void> done) -> Result<T> {
                if (!done) return done.error();
                return kept->first;
            });
    }

    template <StayingValues Mine, StayingRoom<ValueOf<Mine>> All>
    Future<void> gather(Node root, Mine&& mine, All&& all, Instant deadline = never) {
        return start_gather(*seat_, root, by_bytes::bytes(mine), by_bytes::room(all), deadline);
    }
    template <StayingValues All, StayingRoom<ValueOf<All>> Mine>
    Future<void> scatter(Node root, All&& all, Mine&& mine, Instant deadline = never) {
        return start_scatter(*seat_, root, by_bytes::bytes(all), by_bytes::room(mine), deadline);
    }
    template <StayingValues Mine, StayingRoom<ValueOf<Mine>> All>
    Future<void> allgather(Mine&& mine, All&& all, Instant deadline = never) {
        return start_allgather(*seat_, by_bytes::bytes(mine), by_bytes::room(all), deadline);
    }
    template <StayingValues Send, StayingRoom<ValueOf<Send>> Receive_>
    Future<void> alltoall(Send&& send, Receive_&& receive, Instant deadline = never) {
        return start_alltoall(*seat_, by_bytes::bytes(send), by_bytes::room(receive), deadline);
    }

    template <StayingValues Mine, StayingRoom<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Future<void> scan(Mine&& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                      Order order = Order::tree) {
        return start_scan(*seat_, by_bytes::bytes(mine), by_bytes::room(result), true,
                          by_bytes::reduction<ValueOf<Mine>>(operation, order), deadline);
    }
    template <StayingValues Mine, StayingRoom<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Future<void> exclusive_scan(Mine&& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                                Order order = Order::tree) {
        return start_scan(*seat_, by_bytes::bytes(mine), by_bytes::room(result), false,
                          by_bytes::reduction<ValueOf<Mine>>(operation, order), deadline);
    }

    // ---- each member has any number of values; parts are by rank

    template <StayingValues Mine>
    Future<std::vector<std::vector<ValueOf<Mine>>>> gatherv(Node root, Mine&& mine, Instant deadline = never) {
        return typed_parts<ValueOf<Mine>>(start_gatherv(*seat_, root, by_bytes::bytes(mine), deadline));
    }
    /// The parts must stay; the list of them need not.
    template <class List>
        requires(ManyValues<PartOf<List>>&& std::is_lvalue_reference_v<List>)
    Future<std::vector<ValueOf<PartOf<List>>>> scatterv(Node root, List&& parts, Instant deadline = never) {
        using T = ValueOf<PartOf<List>>;
        return start_scatterv(*seat_, root, by_bytes::list(parts), deadline)
            .then([](Result<std::vector<std::byte>> mine) -> Result<std::vector<T>> {
                if (!mine) return mine.error();
                return by_bytes::typed<T>(*mine);
            });
    }
    template <StayingValues Mine>
    Future<std::vector<std::vector<ValueOf<Mine>>>> allgatherv(Mine&& mine, Instant deadline = never) {
        return typed_parts<ValueOf<Mine>>(start_allgatherv(*seat_, by_bytes::bytes(mine), deadline));
    }
    template <class List>
        requires(ManyValues<PartOf<List>>&& std::is_lvalue_reference_v<List>)
    Future<std::vector<std::vector<ValueOf<PartOf<List>>>>> alltoallv(List&& parts, Instant deadline = never) {
        return typed_parts<ValueOf<PartOf<List>>>(start_alltoallv(*seat_, by_bytes::list(parts), deadline));
    }

    template <class List, class Rooms>
        requires(ManyValues<PartOf<List>>&& RoomFor<PartOf<Rooms>, ValueOf<PartOf<List>>>&&
                     std::is_lvalue_reference_v<List>&& std::is_lvalue_reference_v<Rooms>)
    Future<void> alltoallv(List&& parts, Rooms&& rooms, Instant deadline = never) {
        return start_alltoallv(*seat_, by_bytes::list(parts), by_bytes::rooms(rooms), deadline);
    }

    template <StayingValues Mine, StayingRoom<ValueOf<Mine>> Theirs>
    Future<void> sendrecv(Node to, Mine&& mine, Node from, Theirs&& theirs, Instant deadline = never) {
        return start_sendrecv(*seat_, to, by_bytes::bytes(mine), from, by_bytes::room(theirs), deadline);
    }

    /// Values of any type that functions take; requires <kumi/functions.hpp>.
    ObjectStarter objects() const noexcept;

private:
    template <class T>
    static Future<std::vector<std::vector<T>>> typed_parts(Future<Parts> parts) {
        return parts.then([](Result<Parts> all) { return by_bytes::typed<T>(all); });
    }

    std::shared_ptr<Membership> seat_;
};

} // namespace kumi::group
