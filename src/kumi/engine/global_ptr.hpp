#pragma once

// Where something is in the memory of some node. A plain value: it may be stored in segments and sent to other nodes,
// which use it as it is. Reading and writing through it is the engine's work.

#include "kumi/pm/node.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kumi {

/// A segment's number, the same on all nodes. Segment 0 is each node's own heap; what Memory::expose() shows has a
/// number of its node's own. The number of a freed segment is not used again before 1,073,000,000 other segments were
/// made, so a pointer into a freed segment is refused.
using SegmentId = std::uint32_t;

template <class T>
class global_ptr {
    static_assert(std::is_trivially_copyable_v<T>, "remote memory holds values that bytes make up");

public:
    using element_type = T;

    global_ptr() = default;
    global_ptr(pm::Node node, SegmentId segment, std::uint64_t byte_offset) noexcept
        : node_(node), segment_(segment), offset_(byte_offset) {}

    pm::Node node() const noexcept { return node_; }
    SegmentId segment() const noexcept { return segment_; }
    /// In bytes, from the segment's start.
    std::uint64_t offset() const noexcept { return offset_; }
    /// False for a default one.
    explicit operator bool() const noexcept { return node_ != nowhere; }

    /// The same place as a U.
    template <class U>
    global_ptr<U> as() const noexcept {
        return {node_, segment_, offset_};
    }
    /// The same place on another node; of use in segments, which are alike on all of them.
    global_ptr on(pm::Node node) const noexcept { return {node, segment_, offset_}; }

    global_ptr& operator+=(std::ptrdiff_t count) noexcept {
        offset_ += static_cast<std::uint64_t>(count) * sizeof(T);
        return *this;
    }
    global_ptr& operator-=(std::ptrdiff_t count) noexcept { return *this += -count; }
    global_ptr& operator++() noexcept { return *this += 1; }
    global_ptr& operator--() noexcept { return *this -= 1; }
    friend global_ptr operator+(global_ptr where, std::ptrdiff_t count) noexcept { return where += count; }
    friend global_ptr operator+(std::ptrdiff_t count, global_ptr where) noexcept { return where += count; }
    friend global_ptr operator-(global_ptr where, std::ptrdiff_t count) noexcept { return where -= count; }
    /// Of two places in one segment of one node.
    friend std::ptrdiff_t operator-(global_ptr a, global_ptr b) noexcept {
        return static_cast<std::ptrdiff_t>(a.offset_ - b.offset_) / static_cast<std::ptrdiff_t>(sizeof(T));
    }
    friend auto operator<=>(const global_ptr&, const global_ptr&) = default;

private:
    static constexpr pm::Node nowhere = ~pm::Node{0};

    pm::Node node_ = nowhere;
    SegmentId segment_ = 0;
    std::uint64_t offset_ = 0;
};

} // namespace kumi
