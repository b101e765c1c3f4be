#pragma once

// The memory that nodes show each other. Every node has a window of addresses: first a page of the engine's own, then
// segments, which lie at the same place in every window, in its second half the node's heap. Where the channel reaches
// the memory of other nodes by itself (those of this host) their windows are mapped here, and loads and stores go
// straight to them. Places are checked here before anybody touches them, whoever named them.

#include "kumi/base/bytes.hpp"
#include "kumi/base/data/range_set.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/memory/exposures.hpp"
#include "kumi/engine/memory/shared_page.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/engine/wire.hpp"
#include "kumi/pm/channel.hpp"

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kumi::engine {

using pm::Node;

class MemoryMap {
public:
    static Result<std::unique_ptr<MemoryMap>> open(pm::Channel& channel);
    ~MemoryMap();
    MemoryMap(const MemoryMap&) = delete;
    MemoryMap& operator=(const MemoryMap&) = delete;

    /// Whether this process reaches the memory of `node` by loads and stores, and the node is there.
    bool reaches(Node node) const noexcept {
        return is_reached_[node].load(std::memory_order_relaxed); // no memory comes or goes with it
    }
    /// Whether the memory of `node` is mapped here: it is reached, or was until the node was lost.
    bool is_mapped(Node node) const noexcept { return bases_[node] != nullptr; }
    /// `node` is lost: reaches() is false from now on. Accesses then go by messages, which fail because the node is
    /// lost. The memory stays mapped, for threads that access it now.
    void forget(Node node) noexcept {
        if (node != self_) is_reached_[node].store(false, std::memory_order_relaxed);
    }
    /// The first of the nodes whose memory is mapped here.
    Node first_mapped() const noexcept {
        Node first = 0;
        while (!is_mapped(first)) ++first;
        return first;
    }
    /// Of a node whose memory is mapped here.
    SharedPage& page(Node node) const noexcept { return *reinterpret_cast<SharedPage*>(bases_[node]); }

    /// The memory there, of a node whose memory is mapped here; null where the place is in no segment, and for what
    /// other nodes expose. From any thread.
    std::byte* find(Node node, SegmentId segment, std::uint64_t offset, std::uint64_t bytes) const noexcept {
        const std::uint64_t end = end_of(node, segment);
        if (bytes >= end || offset >= end - bytes) [[unlikely]]
            return find_exposed(node, segment, offset, bytes);
        return bases_[node] + starts_[slot_of(segment)].load(std::memory_order_relaxed) + offset; // after end_of()
    }
    /// Whether `bytes` there lie in a segment, as far as this node knows: heaps of other hosts know themselves, and
    /// other nodes know what they expose.
    bool contains(Node node, SegmentId segment, std::uint64_t offset, std::uint64_t bytes) const noexcept {
        if (segment == 0 && !is_mapped(node)) return true;
        const std::uint64_t end = end_of(is_mapped(node) ? node : self_, segment);
        if (bytes < end && offset < end - bytes) [[likely]]
            return true;
        return is_exposed(segment) && (node != self_ || find_exposed(node, segment, offset, bytes) != nullptr);
    }
    /// Why find() or contains() said no.
    std::string explain(Node node, SegmentId segment, std::uint64_t offset, std::uint64_t bytes) const;

    // ---- one thread at a time

    /// Makes a segment. Its number is the same on all nodes as long as they make and drop the same segments in the same
    /// order. A failed call uses up a number too, because it may succeed on other nodes. The number of a dropped
    /// segment is used again after more than a thousand million others.
    Result<SegmentId> make(std::uint64_t bytes);
    void drop(SegmentId segment) noexcept;

    /// Memory of this node's heap, aligned to 64 bytes, zeroed only when it is new.
    Result<std::uint64_t> allocate(std::uint64_t bytes);
    Result<void> release(std::uint64_t offset);

    /// Memory that existed before, and that other nodes reach by messages alone.
    Exposures& exposures() noexcept { return exposures_; }

    /// Segments that a node may have at once, one more with its heap.
    static constexpr SegmentId segments_max = 65'536;

private:
    explicit MemoryMap(pm::Channel& channel);

    // A segment's number is a slot, and above it a generation: how often numbers have begun anew at the first slot. The
    // highest bits are those of other numbers: of exposed memory, and in messages of landings.
    static constexpr unsigned slot_bits = 16, generation_bits = 14;
    static_assert(segments_max == 1u << slot_bits && exposed_bit == 1u << (slot_bits + generation_bits));
    static constexpr unsigned end_bits = 48; // more addresses than there are
    static constexpr SegmentId slot_of(SegmentId segment) noexcept { return segment % segments_max; }

    /// One more than the bytes of a segment; 0: there is no segment of that number.
    std::uint64_t end_of(Node node, SegmentId segment) const noexcept {
        // partner: the release in grow_heap()
        if (segment == 0) return page(node).heap_bytes.load(std::memory_order_acquire) + 1;
        const std::uint64_t slot = ends_[slot_of(segment)].load(std::memory_order_acquire); // partner: make()'s release
        return slot >> end_bits == segment >> slot_bits ? slot & ((std::uint64_t{1} << end_bits) - 1) : 0;
    }
    /// Apart from find(), which stays small so.
    std::byte* find_exposed(Node node, SegmentId segment, std::uint64_t offset, std::uint64_t bytes) const noexcept;
    std::optional<SegmentId> next_number() noexcept;
    Result<void> expose(std::uint64_t offset, std::uint64_t bytes);
    void conceal(std::uint64_t offset, std::uint64_t bytes) noexcept;
    Result<void> grow_heap(std::uint64_t bytes);

    Node self_;
    pm::RemoteMemory* remote_; // null: the window is private memory, for this node only
    std::uint64_t window_bytes_ = 0;
    std::vector<std::byte*> bases_;             // by node; null: not mapped here
    std::vector<std::atomic<bool>> is_reached_; // by node
    std::byte* private_window_ = nullptr;

    struct Free {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    using Table = std::unique_ptr<std::atomic<std::uint64_t>[], Free>; // by slot
    static Table make_table();

    Table starts_; // in windows
    Table ends_;   // one more than the size, and above it the generation; 0: the slot is free
    SegmentId last_slot_ = 0;
    SegmentId generation_ = 0;
    SegmentId segments_ = 0; // that there are
    base::RangeSet segment_ranges_;

    std::map<std::uint64_t, std::uint64_t> allocated_; // in the heap
    base::RangeSet heap_ranges_;
    Exposures exposures_;
};

} // namespace kumi::engine
