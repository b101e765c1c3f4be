#pragma once

// The memory that nodes show each other. Every node has a window of addresses: first a page of the engine's own, then
// segments, which lie at the same place in every window, in its second half the node's heap. Where the channel reaches
// the memory of other nodes by itself (those of this host) their windows are mapped here, and loads and stores go
// straight to them. Places are checked here before anybody touches them, whoever named them.

#include "kumi/base/bytes.hpp"
#include "kumi/base/data/range_set.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/memory/words.hpp"
#include "kumi/engine/memory/shared_page.hpp"
#include "kumi/pm/channel.hpp"

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
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

    /// Whether this process reaches the memory of `node` by loads and stores.
    bool reaches(Node node) const noexcept { return bases_[node] != nullptr; }
    /// The first of the nodes whose memory this one reaches.
    Node first_reached() const noexcept {
        Node first = 0;
        while (!reaches(first)) ++first;
        return first;
    }
    /// Of a node that is reached.
    SharedPage& page(Node node) const noexcept { return *reinterpret_cast<SharedPage*>(bases_[node]); }

    /// The memory there, of a node that is reached; null where the place is in no segment. From any thread.
    std::byte* find(Node node, SegmentId segment, std::uint64_t offset, std::uint64_t bytes) const noexcept {
        const std::uint64_t size = size_of(node, segment);
        if (bytes > size || offset > size - bytes || segment >= segments_max) [[unlikely]] // nothing fits anywhere else
            return nullptr;
        return bases_[node] + starts_[segment].load(std::memory_order_relaxed) + offset; // ordered by size_of()
    }
    /// Whether `bytes` there lie in a segment, as far as this node knows: heaps of other hosts know themselves.
    bool contains(Node node, SegmentId segment, std::uint64_t offset, std::uint64_t bytes) const noexcept {
        if (segment == 0 && !reaches(node)) return true;
        const std::uint64_t size = size_of(reaches(node) ? node : self_, segment);
        return bytes <= size && offset <= size - bytes;
    }
    /// Why find() or contains() said no.
    std::string explain(Node node, SegmentId segment, std::uint64_t offset, std::uint64_t bytes) const;

    // ---- one thread at a time

    /// The next segment, alike on all nodes as long as they make and drop the same ones in the same order.
    Result<SegmentId> make(std::uint64_t bytes);
    void drop(SegmentId segment) noexcept;

    /// Memory of this node's heap, aligned to 64 bytes, zeroed only when it is new.
    Result<std::uint64_t> allocate(std::uint64_t bytes);
    Result<void> release(std::uint64_t offset);

    static constexpr SegmentId segments_max = 65'536;

private:
    explicit MemoryMap(pm::Channel& channel);

    std::uint64_t size_of(Node node, SegmentId segment) const noexcept {
        // partner: the release in grow_heap()
        if (segment == 0) return page(node).heap_bytes.load(std::memory_order_acquire);
        if (segment >= segments_max) return 0;
        return sizes_[segment].load(std::memory_order_acquire); // partner: the release in make()
    }
    Result<void> expose(std::uint64_t offset, std::uint64_t bytes);
    void conceal(std::uint64_t offset, std::uint64_t bytes) noexcept;
    Result<void> grow_heap(std::uint64_t bytes);

    Node self_;
    pm::RemoteMemory* remote_; // null: the window is private memory, for this node only
    std::uint64_t window_bytes_ = 0;
    std::vector<std::byte*> bases_; // by node
    std::byte* private_window_ = nullptr;

    struct Free {
        void operator()(void* memory) const noexcept { std::free(memory); }
    };
    using Table = std::unique_ptr<std::atomic<std::uint64_t>[], Free>; // by segment
    static Table make_table();

    Table starts_; // in windows
    Table sizes_;  // 0: no such segment, or not any more
    SegmentId next_segment_ = 1;
    base::RangeSet segment_ranges_;

    std::map<std::uint64_t, std::uint64_t> allocated_; // in the heap
    base::RangeSet heap_ranges_;
};

} // namespace kumi::engine
