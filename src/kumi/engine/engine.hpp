#pragma once

// The engine: active messages, remote memory, notifications and barriers on top of PM, which go on in the background
// (after NICAM). Users meet it as their Job, which is one.
//
// Threads. All calls are for any thread. What arrives is handled by whoever waits in one of the calls below; while
// nobody does, by a thread in the background, which sleeps until something comes. Handlers run one at a time. A handler
// must not wait: from inside one, calls that would wait are refused with an error; the others are allowed.
//
// Errors. What the caller can know is returned. What fails elsewhere (a handler that throws, a node that dies) is
// returned by the next sync(), which names node and cause, and by the future or get() that it belongs to.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/function_ref.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/barrier_token.hpp"
#include "kumi/engine/future.hpp"
#include "kumi/engine/handlers.hpp"
#include "kumi/engine/memory.hpp"

#include <concepts>
#include <memory>
#include <span>
#include <vector>

namespace kumi::engine {

using pm::Node;
class Dispatcher;

/// Words that remote atomic operations work on.
template <class T>
concept AtomicWord = (sizeof(T) == 4 || sizeof(T) == 8) && std::integral<T>;

template <class T>
concept Value = std::is_trivially_copyable_v<T>;

class Engine {
public:
    explicit Engine(std::unique_ptr<Dispatcher> dispatcher) noexcept;
    Engine(Engine&&) noexcept;
    /// Waits until what waits to be sent has gone.
    ~Engine();

    Node node() const noexcept;
    Node nodes() const noexcept;

    // ---- active messages

    /// Calls `handler` on `to`, which may be this node; in order for each pair of nodes. Waits while too many requests
    /// to it are under way.
    template <class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Result<void> send(Node to, const Handler<Parameters...>& handler, const Arguments&... arguments) {
        Packed<Parameters...> packed(arguments...);
        if (try_send_packed(to, handler.index(), packed.message(), packed.payload())) [[likely]]
            return {};
        return send_packed(to, handler.index(), packed.message(), packed.payload());
    }
    /// The most that arguments and payload take: 256 KiB, or less where the channel has less.
    std::size_t message_bytes_max() const noexcept;

    // ---- segments (collective: all nodes make the same calls in the same order)

    /// Makes a segment of `count` zeroed Ts on each node. Waits for all.
    template <Value T>
    Result<Segment<T>> segment(std::size_t count) {
        const auto made = make_segment(count, sizeof(T));
        if (!made) return made.error();
        return Segment<T>(made->id, node(), std::span<T>(reinterpret_cast<T*>(made->bytes.data()), count));
    }
    /// Gives it back, after what all nodes have under way has arrived. Who names it afterwards gets an error.
    template <class T>
    Result<void> free(const Segment<T>& segment) {
        return free_segment(segment.id());
    }

    // ---- this node's heap, which grows: memory that only this node has, and others reach too

    template <Value T>
    Result<global_ptr<T>> allocate(std::size_t count = 1) {
        const auto offset = allocate_bytes(count, sizeof(T));
        if (!offset) return offset.error();
        return global_ptr<T>(node(), 0, *offset);
    }
    template <class T>
    Result<void> release(global_ptr<T> memory) {
        return release_bytes(memory.template as<std::byte>());
    }
    /// The memory itself, for plain loads and stores: of this node, and of those on the same host. Null for others, and
    /// where the pointer names no memory.
    template <class T>
    T* local(global_ptr<T> where, std::size_t count = 1) {
        return reinterpret_cast<T*>(local_bytes(where.template as<std::byte>(), count * sizeof(T)));
    }

    // ---- remote memory; a word of 4 or 8 bytes, aligned, is read and written whole

    /// Copies to another node's memory (or one's own). The source may be changed as soon as it returns; the data is
    /// there when the notice says so, or after sync(). Any memory may be the source.
    template <Value T>
    Result<void> put(global_ptr<T> to, std::span<const std::type_identity_t<T>> source, const Notice& notice = {}) {
        return put_bytes(to.template as<std::byte>(), std::as_bytes(source), notice);
    }
    /// The same for one value.
    template <Value T>
    Result<void> write(global_ptr<T> to, const std::type_identity_t<T>& value, const Notice& notice = {}) {
        return put_bytes(to.template as<std::byte>(), bytes_of(value), notice);
    }
    /// Only begins: the source must stay as it is until sync(). Small messages do not wait behind large ones begun so.
    template <Value T>
    Result<void> start_put(global_ptr<T> to, std::span<const std::type_identity_t<T>> source,
                           const Notice& notice = {}) {
        return start_put_bytes(to.template as<std::byte>(), std::as_bytes(source), notice);
    }

    /// Copies from another node's memory; it is there when this returns.
    template <Value T>
    Result<void> get(global_ptr<T> from, std::span<std::type_identity_t<T>> target) {
        return get_bytes(from.template as<std::byte>(), std::as_writable_bytes(target));
    }
    template <Value T>
    Result<T> read(global_ptr<T> from) {
        T value;
        if (auto got = get(from, std::span<T>(&value, 1)); !got) return got.error();
        return value;
    }
    /// Only begins: done after sync(), or when `flag` (any word of this node, if not null) is 1.
    template <Value T>
    Result<void> start_get(global_ptr<T> from, std::span<std::type_identity_t<T>> target, Flag* flag = nullptr) {
        return start_get_bytes(from.template as<std::byte>(), std::as_writable_bytes(target), flag);
    }

    /// Copies between the memory of two nodes, neither of which need be this one. Only begins; the notice is for `to`'s
    /// node.
    template <Value T>
    Result<void> copy(global_ptr<T> from, global_ptr<T> to, std::size_t count, const Notice& notice = {}) {
        return copy_bytes(from.template as<std::byte>(), to.template as<std::byte>(), count * sizeof(T), notice);
    }

    /// Blocks at equal distances. Strides are in bytes.
    Result<void> put_strided(global_ptr<std::byte> to, const std::byte* source, const Strided& shape,
                             const Notice& notice = {});
    Result<void> get_strided(global_ptr<std::byte> from, std::byte* target, const Strided& shape);

    /// Many pieces at once; the notice comes after all of them, and they must have one target.
    Result<void> put_pieces(std::span<const PutPiece> pieces, const Notice& notice = {});
    Result<void> get_pieces(std::span<const GetPiece> pieces);

    /// Atomic against each other and against std::atomic_ref at the target. The word must be aligned. Answer what was
    /// there.
    template <AtomicWord T>
    Result<T> fetch_add(global_ptr<T> word, std::type_identity_t<T> amount) {
        return atomic<T>(word, {Atomic::add, sizeof(T), static_cast<std::uint64_t>(amount), 0});
    }
    template <AtomicWord T>
    Result<T> swap(global_ptr<T> word, std::type_identity_t<T> value) {
        return atomic<T>(word, {Atomic::swap, sizeof(T), static_cast<std::uint64_t>(value), 0});
    }
    /// Stores `desired` if `expected` is there.
    template <AtomicWord T>
    Result<T> compare_exchange(global_ptr<T> word, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
        return atomic<T>(word, {Atomic::compare_exchange, sizeof(T), static_cast<std::uint64_t>(desired),
                                static_cast<std::uint64_t>(expected)});
    }

    // ---- notification

    /// Writes one flag of another node; after whatever this node put there before.
    Result<void> set_flag(global_ptr<Flag> flag, Flag value = 1);
    /// Waits until a flag in this node's memory has that value.
    Result<void> wait(const Flag& flag, Flag value = 1, Instant deadline = never);
    /// Sets the counter's flag to 0; after this many arrivals, those included that came before, it is 1.
    void expect(Counter& counter, std::int64_t arrivals);
    /// Waits until all that this node has begun is done where it was to be done: puts, gets, copies, requests.
    /// An error: the first thing that failed since the last sync().
    Result<void> sync(Instant deadline = never);
    /// The same without waiting: `flag`, any word of this node, becomes 1 then.
    Result<void> start_sync(Flag& flag);

    // ---- rendezvous by key: neither side knows where the other has the data

    /// Gives `source`, which must stay until `flag` is `value`, to whoever accepts `key` on `to`.
    Result<void> offer(std::uint64_t key, Node to, Bytes source, Flag* flag = nullptr, Flag value = 1);
    /// Takes what `from` offers under `key` to this node, oldest first; there when `flag` is `value`.
    Result<void> accept(std::uint64_t key, Node from, MutableBytes target, Flag* flag = nullptr, Flag value = 1);

    // ---- broadcast

    /// Copies to the same place on all nodes, this one included, but for those that discard. Only begins: the source
    /// must stay until sync(), after which it is everywhere.
    template <Value T>
    Result<void> broadcast(global_ptr<T> to, std::span<const std::type_identity_t<T>> source,
                           const Notice& notice = {}) {
        return broadcast_bytes(to.template as<std::byte>(), std::as_bytes(source), notice);
    }
    /// From now on what others broadcast is passed on as before, but not written here, and no flag is set.
    void discard_broadcasts(bool discard) noexcept;

    // ---- barriers

    /// This node has come; does not wait. Any number may be under way; they complete in order.
    BarrierToken arrive();
    bool test(const BarrierToken& token);
    Result<void> wait(const BarrierToken& token, Instant deadline = never);
    /// Comes and waits.
    Result<void> barrier(Instant deadline = never);
    /// The same among some nodes, of which this is one: all give the same set, in any order.
    Result<BarrierToken> arrive(std::span<const Node> members);

    // ---- C++

    /// Calls a function on another node; what it answers, or throws, comes to the future.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    Future<Answer> invoke(Node to, const Function<Answer(Parameters...)>& function, const Arguments&... arguments);
    /// On all nodes, this one included; answers by node.
    template <class Answer, class... Parameters, class... Arguments>
        requires(sizeof...(Parameters) == sizeof...(Arguments))
    std::vector<Future<Answer>> invoke_all(const Function<Answer(Parameters...)>& function,
                                           const Arguments&... arguments);

    // ---- progress

    /// Handles what has arrived; answers how many messages.
    std::size_t poll();
    /// Sends what was held back so that small messages share a packet. Whatever waits does it too.
    void flush();
    /// Makes progress until `done()`, sleeping while there is nothing to do. False when the deadline came first. `done`
    /// may look at what handlers change, and at flags.
    bool wait_until(base::FunctionRef<bool()> done, Instant deadline = never);

    Dispatcher& dispatcher() noexcept { return *dispatcher_; }
    Dispatcher& core() noexcept { return *dispatcher_; }

protected:
    /// As the destructor; the engine must not be used any more.
    void close() noexcept;

private:
    struct MadeSegment {
        SegmentId id;
        MutableBytes bytes;
    };
    template <class T>
    Result<T> atomic(global_ptr<T> word, const Atomic& what) {
        const auto before = atomic_bytes(word.template as<std::byte>(), what);
        if (!before) return before.error();
        return static_cast<T>(*before);
    }

    bool try_send_packed(Node to, std::uint32_t handler, MutableBytes message, Bytes payload) noexcept;
    Result<void> send_packed(Node to, std::uint32_t handler, MutableBytes message, Bytes payload);
    Result<MadeSegment> make_segment(std::size_t count, std::size_t bytes_each);
    Result<void> free_segment(SegmentId segment);
    Result<std::uint64_t> allocate_bytes(std::size_t count, std::size_t bytes_each);
    Result<void> release_bytes(global_ptr<std::byte> memory);
    std::byte* local_bytes(global_ptr<std::byte> where, std::size_t bytes) noexcept;
    Result<void> put_bytes(global_ptr<std::byte> to, Bytes source, const Notice& notice);
    Result<void> start_put_bytes(global_ptr<std::byte> to, Bytes source, const Notice& notice);
    Result<void> get_bytes(global_ptr<std::byte> from, MutableBytes target);
    Result<void> start_get_bytes(global_ptr<std::byte> from, MutableBytes target, Flag* flag);
    Result<void> copy_bytes(global_ptr<std::byte> from, global_ptr<std::byte> to, std::size_t bytes,
                            const Notice& notice);
    Result<std::uint64_t> atomic_bytes(global_ptr<std::byte> word, const Atomic& what);
    Result<void> broadcast_bytes(global_ptr<std::byte> to, Bytes source, const Notice& notice);

    std::unique_ptr<Dispatcher> dispatcher_;
};

} // namespace kumi::engine

#include "kumi/engine/invoke.hpp"
