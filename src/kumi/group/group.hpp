#pragma once

// What the members of a set do together, in calls that all of them make. A set is enough: nothing is made or agreed on
// before, and who is no member has nothing to do with it.
//
//     auto group = job->group(Set{1, 4, 6, 7});                         // at each of these nodes
//     const auto total = group->allreduce(mine, kumi::group::sum);
//
// Matching. Members make the same calls on equal sets in the same order. Calls on different sets have no order, but a
// thread that waits in one call is not in the next: in one thread per node, calls on sets with common members are in
// the same order too.
//
// Operations take two values and answer one, and must be associative. Values are always combined in the order of ranks,
// so an operation need not be commutative. Where the parentheses are depends on the number of members, the root and the
// size, and on nothing else: equal calls give equal results, and an allreduce the same bits at all members. With
// Order::by_rank they are ((0, 1), 2) and so on, in all calls and for all sizes; that takes longer. Operations run on
// whatever thread makes progress, one at a time, and must not call the engine; what they throw is an error at all.
//
// Values are trivially copyable, and travel as they are. `mine` and the result may be one array.
//
// Errors tell the set and the node that is the cause: one that has left, one that did not come before the deadline, or
// that came with another size, or in another call. Whoever needs it gets the error; others may be done (the root of a
// broadcast does not wait). Results are undefined then. The set can be used again, if all members make the same calls
// all the same: what was left over of the failed call is not mistaken for a later one. Not so if members called
// different things (other than sizes), or one not at all.
//
// Ahead. A member whose part is done goes on, and may be ahead of others by Mailbox::window_bytes for each of them;
// then it waits.

#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/group/collective/collectives.hpp"
#include "kumi/group/set.hpp"

#include <concepts>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace kumi::group {

struct Sum {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a + b);
    }
};
struct Product {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a * b);
    }
};
struct Min {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return b < a ? b : a;
    }
};
struct Max {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return a < b ? b : a;
    }
};
struct BitAnd {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a & b);
    }
};
struct BitOr {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a | b);
    }
};
struct BitXor {
    template <class T>
    T operator()(const T& a, const T& b) const {
        return static_cast<T>(a ^ b);
    }
};
inline constexpr Sum sum;
inline constexpr Product product;
inline constexpr Min min;
inline constexpr Max max;
inline constexpr BitAnd bit_and;
inline constexpr BitOr bit_or;
inline constexpr BitXor bit_xor;

/// One after the other in memory: a span, a vector, an array.
template <class Range>
concept Values = requires(Range& range) {
    requires std::is_trivially_copyable_v<typename decltype(std::span(range))::value_type>;
};
template <class Range>
using SpanOf = decltype(std::span(std::declval<Range&>()));
template <Values Range>
using ValueOf = typename SpanOf<Range>::value_type;
/// Room for values of that type.
template <class Range, class T>
concept RoomFor = Values<Range> && std::same_as<ValueOf<Range>, T> &&
    !std::is_const_v<typename SpanOf<Range>::element_type>;
/// The ranges in a range of ranges.
template <class List>
using PartOf = std::remove_cvref_t<decltype(*std::begin(std::declval<const List&>()))>;
template <class Function, class T>
concept OperationOn = std::is_invocable_r_v<T, const Function&, const T&, const T&>;

/// A member's view of its set. Copies are the same one. Not to be used after its job. One thread at a time is in a
/// call.
class Group {
public:
    explicit Group(std::shared_ptr<Membership> seat) noexcept : seat_(std::move(seat)) {}

    /// Of this node.
    Node rank() const noexcept;
    Node size() const noexcept;
    const Set& set() const noexcept;

    /// All have come.
    Result<void> barrier(Instant deadline = never) { return group::barrier(*seat_, deadline); }

    /// The root's values come to all.
    template <Values Range>
    Result<void> broadcast(Node root, Range&& values, Instant deadline = never)
        requires RoomFor<Range, ValueOf<Range>>
    {
        return group::broadcast(*seat_, root, room(values), deadline);
    }

    /// Combines values of equal place; the root has the result. Elsewhere the result is not used, and may be empty.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> reduce(Node root, const Mine& mine, Result_&& result, const Operation& operation,
                        Instant deadline = never, Order order = Order::tree) {
        const auto combine = combining<ValueOf<Mine>>(operation);
        return group::reduce(*seat_, root, bytes(mine), room(result), {combine, sizeof(ValueOf<Mine>), order},
                             deadline);
    }
    /// The same, and all have it.
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

    /// Everybody's values, as many from each, come to the root, by rank. Elsewhere `all` is not used.
    template <Values Mine, RoomFor<ValueOf<Mine>> All>
    Result<void> gather(Node root, const Mine& mine, All&& all, Instant deadline = never) {
        return group::gather(*seat_, root, bytes(mine), room(all), deadline);
    }
    /// The other way.
    template <Values All, RoomFor<ValueOf<All>> Mine>
    Result<void> scatter(Node root, const All& all, Mine&& mine, Instant deadline = never) {
        return group::scatter(*seat_, root, bytes(all), room(mine), deadline);
    }
    /// As gather(), and all have it.
    template <Values Mine, RoomFor<ValueOf<Mine>> All>
    Result<void> allgather(const Mine& mine, All&& all, Instant deadline = never) {
        return group::allgather(*seat_, bytes(mine), room(all), deadline);
    }
    /// The part of `send` for each rank goes to that one, and comes to the part of `receive` for the sender's. Parts
    /// are equal.
    template <Values Send, RoomFor<ValueOf<Send>> Receive_>
    Result<void> alltoall(const Send& send, Receive_&& receive, Instant deadline = never) {
        return group::alltoall(*seat_, bytes(send), room(receive), deadline);
    }

    /// Combines values of ranks up to this one's.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> scan(const Mine& mine, Result_&& result, const Operation& operation, Instant deadline = never,
                      Order order = Order::tree) {
        const auto combine = combining<ValueOf<Mine>>(operation);
        return group::scan(*seat_, bytes(mine), room(result), true, {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }
    /// Of ranks before this one's. At the first, which has none before it, the result stays as it is.
    template <Values Mine, RoomFor<ValueOf<Mine>> Result_, OperationOn<ValueOf<Mine>> Operation>
    Result<void> exclusive_scan(const Mine& mine, Result_&& result, const Operation& operation,
                                Instant deadline = never, Order order = Order::tree) {
        const auto combine = combining<ValueOf<Mine>>(operation);
        return group::scan(*seat_, bytes(mine), room(result), false, {combine, sizeof(ValueOf<Mine>), order}, deadline);
    }

    // ---- each with as many values as it has; parts are by rank

    /// Elsewhere than at the root the answer is empty.
    template <Values Mine>
    Result<std::vector<std::vector<ValueOf<Mine>>>> gatherv(Node root, const Mine& mine, Instant deadline = never) {
        return typed<ValueOf<Mine>>(group::gatherv(*seat_, root, bytes(mine), deadline));
    }
    /// `parts`, a range of ranges, is used at the root only.
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
    /// One part for each rank, this one included.
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

    /// The operation for values as bytes. These may lie anywhere.
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
