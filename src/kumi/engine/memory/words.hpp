#pragma once

// The words of remote memory: segments, and what is told to whom when data has arrived.

#include "kumi/base/bytes.hpp"
#include "kumi/engine/global_ptr.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace kumi {

/// A word in a segment that is set when something has happened. Plain memory: any thread may look at it, by
/// load_flag(), at any time; waiting for it without burning a core is Memory::wait().
using Flag = std::uint64_t;

inline Flag load_flag(const Flag& flag) noexcept {
    // Acquire: partner of the release in the engine's set_flag(): who sees the flag sees the data.
    return std::atomic_ref<Flag>(const_cast<Flag&>(flag)).load(std::memory_order_acquire);
}

/// Sets its flag to 1 after as many arrivals as Memory::expect() said, in whatever order the two happen. In a segment;
/// zero at first.
struct Counter {
    std::int64_t missing = 0; // arrivals; below zero: they came before they were expected
    Flag flag = 0;
};

/// What happens at the target once data is there.
struct Notice {
    enum class Kind : std::uint32_t { none, set, count };

    Kind kind = Kind::none;
    SegmentId segment = 0; // on the target, as the data
    std::uint64_t offset = 0;
    std::uint64_t value = 0;

    /// Sets a flag on the node where the data goes.
    static Notice set(global_ptr<Flag> flag, Flag value = 1) noexcept {
        return {Kind::set, flag.segment(), flag.offset(), value};
    }
    /// Counts one arrival there.
    static Notice count(global_ptr<Counter> counter) noexcept {
        return {Kind::count, counter.segment(), counter.offset(), 0};
    }
};
static_assert(sizeof(Notice) == 24);

/// What is done to a word of 4 or 8 bytes, atomically. Travels between nodes: new kinds go to the end.
struct Atomic {
    enum Kind : std::uint32_t {
        add, // of integers, signed or not
        swap,
        compare_exchange, // of bits
        bit_and,
        bit_or,
        bit_xor,
        min_signed,
        max_signed,
        min_unsigned,
        max_unsigned,
        add_float, // float if the word has 4 bytes, double if it has 8
        min_float,
        max_float,
        last_kind = max_float,
    };

    Kind kind;
    std::uint32_t bytes;
    std::uint64_t operand;
    std::uint64_t expected; // for compare_exchange
};

/// Memory that every node has, of the same size, under the same number. Made by Memory::segment().
template <class T>
class Segment {
public:
    Segment() = default;
    Segment(SegmentId id, pm::Node self, std::span<T> local) noexcept : id_(id), self_(self), local_(local) {}

    SegmentId id() const noexcept { return id_; }
    std::size_t size() const noexcept { return local_.size(); }
    /// This node's own part: ordinary memory.
    std::span<T> local() const noexcept { return local_; }
    T& operator[](std::size_t index) const noexcept { return local_[index]; }
    /// An element of `node`'s part.
    global_ptr<T> at(pm::Node node, std::size_t index = 0) const noexcept { return {node, id_, index * sizeof(T)}; }
    /// An element of this node's own.
    global_ptr<T> here(std::size_t index = 0) const noexcept { return at(self_, index); }

private:
    SegmentId id_ = 0;
    pm::Node self_ = 0;
    std::span<T> local_;
};

namespace engine {
/// What is copied between nodes: nothing but its memory.
template <class T>
concept Value = std::is_trivially_copyable_v<T>;

/// The bytes of `count` Ts. If there is no such number, the largest one, for which no memory has room.
template <class T>
constexpr std::size_t bytes_for(std::size_t count) noexcept {
    constexpr std::size_t most = ~std::size_t{0};
    return count > most / sizeof(T) ? most : count * sizeof(T);
}

/// A segment that was made: its number, and this node's part of it.
struct MadeSegment {
    SegmentId id;
    MutableBytes bytes;
};
} // namespace engine

/// What offer() gave, for cancel().
struct OfferToken {
    std::uint64_t key = 0;
    pm::Node to = 0;
    std::uint64_t number = 0; // among the offers of this node, from 1
};
/// What accept() gave, for cancel().
struct AcceptToken {
    std::uint64_t key = 0;
    pm::Node from = 0;
    std::uint32_t index = 0; // of the engine's
    std::uint32_t generation = 0;
};

/// One of many pieces that are put, or got, together.
struct PutPiece {
    global_ptr<std::byte> to;
    Bytes source;
};
struct GetPiece {
    global_ptr<std::byte> from;
    MutableBytes target;
};

/// Blocks of equal size at equal distances: a column, a tile of a matrix.
struct Strided {
    std::size_t block_bytes;
    std::size_t count;
    std::ptrdiff_t source_stride; // bytes from the start of one block to that of the next
    std::ptrdiff_t target_stride;
};

} // namespace kumi
