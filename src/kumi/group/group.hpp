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
// Values are trivially copyable and are sent as they are in memory. `mine` and the result may be the same array.
//
// Errors name the set and the node that is the cause: a node that has left, that did not arrive before the deadline,
// that came with another size, or that made another call. Members that depend on that node get the error; others may
// have finished (the root of a broadcast does not wait). After an error the results are undefined. The set can be used
// again if all members make the same calls afterwards: messages that are left of the failed call are not mistaken for
// messages of a later one. The set cannot be used again if members made different calls (other than in size), or one
// made none.
//
// Running ahead. A member whose part is done returns, and may be ahead of each other member by Mailbox::window_bytes;
// then it waits.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/collectives.hpp"
#include "kumi/group/operations.hpp"
#include "kumi/group/set.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::group {

/// A member's view of its set. Copies refer to the same set. Must not be used after the job has ended. One thread at a
/// time may be in a call.
class Group {
public:
    explicit Group(std::shared_ptr<Membership> seat) noexcept : seat_(std::move(seat)) {}

    /// The rank of this node.
    Node rank() const noexcept;
    Node size() const noexcept;
    const Set& set() const noexcept;

    /// Arrives and waits for all members.
    Result<void> barrier(Instant deadline = never) { return group::barrier(*seat_, deadline); }

    /// All members get the root's values.
    template <Values Range>
    Result<void> broadcast(Node root, Range&& values, Instant deadline = never)
        requires RoomFor<Range, ValueOf<Range>>
    {
        return group::broadcast(*seat_, root, room(values), deadline);
    }

    /// Combines the values at equal indices; the root gets the result. Elsewhere `result` is not used and may be empty.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> reduce(Node root, const Mine& mine, Result_&& result, const Operation& operation,
                        Instant deadline = never, Order order = Order::tree) {
        const auto combine = combining<ValueOf<Mine>>(operation);
        return group::reduce(*seat_, root, bytes(mine), room(result), {combine, sizeof(ValueOf<Mine>), order},
                             deadline);
    }
    /// The same, and all members get the result.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> allreduce(const Mine& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                           Order order = Order::tree) {
        const auto combine = combining<ValueOf<Mine>>(operation);
        return group::allreduce(*seat_, bytes(mine), room(result), {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }
    /// The same for one value.
    template <class T, OperationOn<T> Operation>
        requires(std::is_trivially_copyable_v<T> && !Values<T>)
    Result<T> allreduce(const T& mine, const Operation& operation, Instant deadline = never,
                        Order order = Order::tree) {
        T result = mine;
        if (auto done = allreduce(std::span(&mine, 1), std::span(&result, 1), operation, deadline, order); !done)
            return done.error();
        return result;
    }

    /// The root gets the values of all members, equally many from each, by rank. Elsewhere `all` is not used.
    template <Values Mine, RoomFor<ValueOf<Mine>> All>
    Result<void> gather(Node root, const Mine& mine, All&& all, Instant deadline = never) {
        return group::gather(*seat_, root, bytes(mine), room(all), deadline);
    }
    /// The inverse of gather(): each member gets its part of the root's values.
    template <Values All, RoomFor<ValueOf<All>> Mine>
    Result<void> scatter(Node root, const All& all, Mine&& mine, Instant deadline = never) {
        return group::scatter(*seat_, root, bytes(all), room(mine), deadline);
    }
    /// As gather(), and all members get the result.
    template <Values Mine, RoomFor<ValueOf<Mine>> All>
    Result<void> allgather(const Mine& mine, All&& all, Instant deadline = never) {
        return group::allgather(*seat_, bytes(mine), room(all), deadline);
    }
    /// Part r of `send` goes to rank r, into the part of `receive` with the sender's rank. All parts have the same
    /// size.
    template <Values Send, RoomFor<ValueOf<Send>> Receive_>
    Result<void> alltoall(const Send& send, Receive_&& receive, Instant deadline = never) {
        return group::alltoall(*seat_, bytes(send), room(receive), deadline);
    }

    /// Combines the values of the ranks up to this member's own.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> scan(const Mine& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                      Order order = Order::tree) {
        const auto combine = combining<ValueOf<Mine>>(operation);
        return group::scan(*seat_, bytes(mine), room(result), true, {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }
    /// Combines the values of the ranks before this member's own. At rank 0 the result is not changed.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> exclusive_scan(const Mine& mine, Result_&& result, const Operation& operation,
                                Instant deadline = never, Order order = Order::tree) {
        const auto combine = combining<ValueOf<Mine>>(operation);
        return group::scan(*seat_, bytes(mine), room(result), false, {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }

    // ---- each member has any number of values; parts are by rank

    /// The result is empty at members that are not the root.
    template <Values Mine>
    Result<std::vector<std::vector<ValueOf<Mine>>>> gatherv(Node root, const Mine& mine, Instant deadline = never) {
        return typed<ValueOf<Mine>>(group::gatherv(*seat_, root, bytes(mine), deadline));
    }
    /// `parts` is a range of ranges and is used at the root only.
    template <class List>
        requires Values<PartOf<List>>
    Result<std::vector<ValueOf<PartOf<List>>>> scatterv(Node root, const List& parts, Instant deadline = never) {
        const auto mine = group::scatterv(*seat_, root, list(parts), deadline);
        if (!mine) return mine.error();
        return typed<ValueOf<PartOf<List>>>(*mine);
    }
    template <Values Mine>
    Result<std::vector<std::vector<ValueOf<Mine>>>> allgatherv(const Mine& mine, Instant deadline = never) {
        return typed<ValueOf<Mine>>(group::allgatherv(*seat_, bytes(mine), deadline));
    }
    /// `parts` has one part for each rank, this member's own included.
    template <class List>
        requires Values<PartOf<List>>
    Result<std::vector<std::vector<ValueOf<PartOf<List>>>>> alltoallv(const List& parts, Instant deadline = never) {
        return typed<ValueOf<PartOf<List>>>(group::alltoallv(*seat_, list(parts), deadline));
    }

private:
    template <class Range>
    static Bytes bytes(const Range& values) noexcept {
        return std::as_bytes(std::span(values));
    }
    template <class Range>
    static MutableBytes room(Range&& values) noexcept {
        return std::as_writable_bytes(std::span(values));
    }
    template <class List>
    static std::vector<Bytes> list(const List& parts) {
        std::vector<Bytes> all;
        for (const auto& part : parts) all.push_back(bytes(part));
        return all;
    }
    template <class T>
    static std::vector<T> typed(const std::vector<std::byte>& content) {
        std::vector<T> values(content.size() / sizeof(T));
        if (!values.empty()) std::memcpy(values.data(), content.data(), values.size() * sizeof(T));
        return values;
    }
    template <class T>
    static Result<std::vector<std::vector<T>>> typed(const Result<Parts>& parts) {
        if (!parts) return parts.error();
        std::vector<std::vector<T>> all;
        for (const auto& part : *parts) all.push_back(typed<T>(part));
        return all;
    }

    /// The operation on values as bytes, at any alignment.
    template <class T, class Operation>
    static auto combining(const Operation& operation) noexcept {
        return [&operation](std::byte* into, const std::byte* mine, const std::byte* other, std::size_t size,
                            bool other_is_first) {
            const std::size_t count = size / sizeof(T);
            const auto is_aligned = [](const std::byte* at) {
                return reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0;
            };
            if (is_aligned(into) && is_aligned(mine) && is_aligned(other)) {
                T* const to = reinterpret_cast<T*>(into);
                const T* const a = reinterpret_cast<const T*>(other_is_first ? other : mine);
                const T* const b = reinterpret_cast<const T*>(other_is_first ? mine : other);
                for (std::size_t i = 0; i < count; ++i) to[i] = operation(a[i], b[i]);
                return;
            }
            for (std::size_t i = 0; i < count; ++i) {
                T a, b;
                std::memcpy(&a, (other_is_first ? other : mine) + i * sizeof(T), sizeof(T));
                std::memcpy(&b, (other_is_first ? mine : other) + i * sizeof(T), sizeof(T));
                const T both = operation(a, b);
                std::memcpy(into + i * sizeof(T), &both, sizeof(T));
            }
        };
    }

    std::shared_ptr<Membership> seat_;
};

} // namespace kumi::group
