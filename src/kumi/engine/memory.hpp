#pragma once

// Memory that other nodes reach, and access to theirs: job.memory(). A Memory is a small value; it must not be used
// after its job has ended. All functions are for any thread. Nodes of this host access each other's memory by plain
// loads and stores; messages carry the data to other hosts.
//
// Puts, gets, copies and atomic operations have up to three forms:
//
//                        source of a put must stay until        the data is at its target when
//     put, write         the call returns                       the notice says so, or after sync()
//     start_put, copy    sync() returns                         the notice says so, or after sync()
//     async().put, ...   the future is ready or cancelled       the future is ready
//
//                        target of a get must stay until        the data is there when
//     get, read          the call returns                       the call returns
//     start_get          its flag is 1, or sync() returns       its flag is 1, or after sync()
//     async().get        the future is ready or cancelled       the future is ready
//
// Errors that only the other node knows come to the next sync(), for async() to the future. A future that is destroyed
// early, or whose get() has timed out, leaves its operation under way: cancel() ends it, and sync() waits for it.
//
// The memory of a node is lost with the node, also when the node has left: accesses fail with ErrorCode::node_lost from
// when this node knows of it, for nodes of this host, too. Pointers that local() gave before stay good.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/barrier/barrier_token.hpp"
#include "kumi/engine/future/async_memory.hpp"
#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/memory/atomics.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/pm/node.hpp"

#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

namespace kumi::engine {

using pm::Node;
class Dispatcher;

/// What the templates below call.
namespace by_bytes {
Node node_of(Dispatcher& dispatcher) noexcept;
Result<MadeSegment> make_segment(Dispatcher& dispatcher, std::size_t count, std::size_t bytes_each);
Result<void> free_segment(Dispatcher& dispatcher, SegmentId segment);
Result<std::uint64_t> allocate(Dispatcher& dispatcher, std::size_t count, std::size_t bytes_each);
Result<void> release(Dispatcher& dispatcher, Where memory);
Result<SegmentId> expose(Dispatcher& dispatcher, MutableBytes memory);
Result<void> conceal(Dispatcher& dispatcher, Where memory);
std::byte* local(Dispatcher& dispatcher, Where where, std::size_t bytes) noexcept;
Result<void> put(Dispatcher& dispatcher, Where to, Bytes source, const Notice& notice);
Result<void> start_put(Dispatcher& dispatcher, Where to, Bytes source, const Notice& notice);
Result<void> get(Dispatcher& dispatcher, Where from, MutableBytes target);
Result<void> start_get(Dispatcher& dispatcher, Where from, MutableBytes target, Flag* flag);
Result<void> copy(Dispatcher& dispatcher, Where from, Where to, std::size_t bytes, const Notice& notice);
Result<std::uint64_t> atomic(Dispatcher& dispatcher, Where word, const Atomic& what);
} // namespace by_bytes

/// Has the atomic operations of memory/atomics.hpp, too: fetch_add(), swap(), compare_exchange(), fetch_min() ...
class Memory : public AtomicOperations<Memory> {
public:
    explicit Memory(Dispatcher& dispatcher) noexcept : dispatcher_(&dispatcher) {}

    /// The forms that give futures: future/async_memory.hpp.
    AsyncMemory async() const noexcept { return AsyncMemory(*dispatcher_); }

    // ---- segments: all nodes make the same calls in the same order

    /// Makes a segment of `count` zeroed Ts on each node. Waits for all nodes.
    template <Value T>
    Result<Segment<T>> segment(std::size_t count) {
        const auto made = by_bytes::make_segment(*dispatcher_, count, sizeof(T));
        if (!made) return made.error();
        T* const first = reinterpret_cast<T*>(made->bytes.data());
        return Segment<T>(made->id, by_bytes::node_of(*dispatcher_), std::span<T>(first, count));
    }
    /// Frees a segment, after everything has arrived that the calling threads of all nodes have begun. What other
    /// threads have under way, and later accesses, are errors.
    template <class T>
    Result<void> free(const Segment<T>& segment) {
        return by_bytes::free_segment(*dispatcher_, segment.id());
    }

    // ---- the heap of this node: memory that only this node has, and that other nodes reach too. It grows.

    /// Memory for `count` Ts. Errors: ErrorCode::too_large, ErrorCode::no_memory.
    template <Value T>
    Result<global_ptr<T>> allocate(std::size_t count = 1) {
        const auto offset = by_bytes::allocate(*dispatcher_, count, sizeof(T));
        if (!offset) return offset.error();
        return global_ptr<T>(by_bytes::node_of(*dispatcher_), 0, *offset);
    }
    /// Gives back what allocate() gave to this node; anything else is an error.
    template <class T>
    Result<void> release(global_ptr<T> memory) {
        return by_bytes::release(*dispatcher_, memory.template as<std::byte>());
    }

    // ---- memory that exists

    /// Lets other nodes reach any memory of this process: an array of the program, a static variable. It must stay
    /// where it is until conceal(). Nodes of this host reach it by messages, too, so segments and the heap are faster.
    /// There may be 1,024 such pieces. Words for flags and atomic operations must be aligned, in memory and in the
    /// piece.
    template <std::ranges::contiguous_range Range>
        requires(std::ranges::borrowed_range<Range>&& Value<std::ranges::range_value_t<Range>> &&
                 !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>)
    Result<global_ptr<std::ranges::range_value_t<Range>>> expose(Range&& memory) {
        const auto number = by_bytes::expose(*dispatcher_, std::as_writable_bytes(std::span(memory)));
        if (!number) return number.error();
        return global_ptr<std::ranges::range_value_t<Range>>(by_bytes::node_of(*dispatcher_), *number, 0);
    }
    /// Ends that, for the whole piece that `memory` points into. When this returns, nothing is read or written there
    /// for other nodes any more: accesses that have not arrived, and later ones, are errors there.
    template <class T>
    Result<void> conceal(global_ptr<T> memory) {
        return by_bytes::conceal(*dispatcher_, memory.template as<std::byte>());
    }

    /// The memory itself, for plain loads and stores: of this node, and of other nodes of this host. Null for nodes of
    /// other hosts, for nodes that are lost, for what other nodes expose, and where the pointer names no memory.
    template <class T>
    T* local(global_ptr<T> where, std::size_t count = 1) {
        return reinterpret_cast<T*>(
            by_bytes::local(*dispatcher_, where.template as<std::byte>(), bytes_for<T>(count)));
    }

    // ---- puts and gets; an aligned word of 4 or 8 bytes is read and written whole

    /// Copies `source`, any memory of this process, to the memory of a node. The source may be changed as soon as this
    /// returns. The data is there when the notice says so, or after sync().
    template <Value T>
    Result<void> put(global_ptr<T> to, std::span<const std::type_identity_t<T>> source, const Notice& notice = {}) {
        return by_bytes::put(*dispatcher_, to.template as<std::byte>(), std::as_bytes(source), notice);
    }
    /// Puts one value.
    template <Value T>
    Result<void> write(global_ptr<T> to, const std::type_identity_t<T>& value, const Notice& notice = {}) {
        return by_bytes::put(*dispatcher_, to.template as<std::byte>(), bytes_of(value), notice);
    }
    /// Begins a put: the source must stay as it is until sync(). Small messages do not wait behind it.
    template <Value T>
    Result<void> start_put(global_ptr<T> to, std::span<const std::type_identity_t<T>> source,
                           const Notice& notice = {}) {
        return by_bytes::start_put(*dispatcher_, to.template as<std::byte>(), std::as_bytes(source), notice);
    }

    /// Copies from the memory of a node. Waits for the data.
    template <Value T>
    Result<void> get(global_ptr<T> from, std::span<std::type_identity_t<T>> target) {
        return by_bytes::get(*dispatcher_, from.template as<std::byte>(), std::as_writable_bytes(target));
    }
    /// Gets one value.
    template <Value T>
    Result<T> read(global_ptr<T> from) {
        T value;
        if (auto got = get(from, std::span<T>(&value, 1)); !got) return got.error();
        return value;
    }
    /// Begins a get: the data is there after sync(), or when `flag` (any word of this node, or null) is 1.
    template <Value T>
    Result<void> start_get(global_ptr<T> from, std::span<std::type_identity_t<T>> target, Flag* flag = nullptr) {
        return by_bytes::start_get(*dispatcher_, from.template as<std::byte>(), std::as_writable_bytes(target), flag);
    }

    /// Begins a copy between the memory of two nodes, neither of which need be this one. The notice is carried out on
    /// the node of `to`.
    template <Value T>
    Result<void> copy(global_ptr<T> from, global_ptr<T> to, std::size_t count, const Notice& notice = {}) {
        return by_bytes::copy(*dispatcher_, from.template as<std::byte>(), to.template as<std::byte>(),
                              bytes_for<T>(count), notice);
    }

    /// Blocks at equal distances. Strides are in bytes.
    Result<void> put_strided(global_ptr<std::byte> to, const std::byte* source, const Strided& shape,
                             const Notice& notice = {});
    Result<void> get_strided(global_ptr<std::byte> from, std::byte* target, const Strided& shape);

    /// Many pieces at once. All pieces of a put go to one node; the notice is carried out after all of them.
    Result<void> put_pieces(std::span<const PutPiece> pieces, const Notice& notice = {});
    Result<void> get_pieces(std::span<const GetPiece> pieces);

    // ---- notification: flags signal completion; waiting for one does not spin

    /// Sets a flag of a node, after everything that this node has put there before.
    Result<void> set_flag(global_ptr<Flag> flag, Flag value = 1);
    /// Waits until a flag of this node is `value` or more: a flag that counts may go past `value` before this thread
    /// looks. For 0, until it is 0. An error of something that this thread has begun ends the wait, because the flag
    /// may never be set then. Such an error ends one wait. The next sync() returns it too, unless it belongs to the
    /// start_get() that was to set this flag, or a later error of this thread has replaced it.
    Result<void> wait(const Flag& flag, Flag value = 1, Instant deadline = never);
    /// The same until the flag is exactly `value`. For flags whose values are no count.
    Result<void> wait_equal(const Flag& flag, Flag value, Instant deadline = never);
    /// Does not wait: `flag`, any word of this node, is 0 now and becomes 1 when the barrier of the token is complete.
    /// A barrier that lacks a lost node never is: then wait() for the flag returns ErrorCode::node_lost to this thread.
    /// The flag must stay until it is set, or until the job ends.
    void notify(const BarrierToken& token, Flag& flag);
    /// Sets the counter's flag to 0. The flag becomes 1 after this many arrivals, earlier ones included.
    void expect(Counter& counter, std::int64_t arrivals);

    // ---- rendezvous by key: neither side knows where the other has the data

    /// Gives `source`, which must stay until `flag` is `value`, to the accept() of `key` on `to`.
    Result<OfferToken> offer(std::uint64_t key, Node to, Bytes source, Flag* flag = nullptr, Flag value = 1);
    /// Takes the oldest offer of `from` under `key`. The data is there when `flag` is `value`.
    Result<AcceptToken> accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag = nullptr,
                               Flag value = 1);
    /// Withdraws an offer; does not wait. When this returns, its source is not read any more, and its flag is not set.
    /// If the data was being sent, the accept() that was to have it fails with ErrorCode::cancelled; otherwise the
    /// accept() takes the next offer. An error, ErrorCode::not_found: the offer was taken, has failed or was withdrawn.
    Result<void> cancel(const OfferToken& offered);
    /// Withdraws an accept. Waits for an answer of the other node. When this returns, nothing is written to the target
    /// any more, and the flag is not set later. The offer is then for the next accept() of that key. Errors:
    /// ErrorCode::not_found, if the data is there, or the accept has failed or was withdrawn; ErrorCode::timed_out,
    /// also in a handler, which cannot wait: the accept is withdrawn, but an offer for it may be used up.
    Result<void> cancel(const AcceptToken& accepted, Instant deadline = never);

private:
    friend class AtomicOperations<Memory>;
    template <class T>
    Result<T> atomic(global_ptr<T> word, const Atomic& what) {
        const auto before = by_bytes::atomic(*dispatcher_, word.template as<std::byte>(), what);
        if (!before) return before.error();
        return from_word<T>(*before);
    }

    Dispatcher* dispatcher_;
};

} // namespace kumi::engine
