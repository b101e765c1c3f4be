#pragma once

// Memory that other nodes reach: segments, which all nodes make and free together, the heap of this node, and what this
// node exposes.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/memory/words.hpp"

#include <cstdint>

namespace kumi::engine {

class Dispatcher;
class MemoryMap;

class Segments {
public:
    using Where = global_ptr<std::byte>;

    Segments(Dispatcher& dispatcher, MemoryMap& map) noexcept : dispatcher_(dispatcher), map_(map) {}

    /// Where the memory of each node is.
    MemoryMap& map() noexcept { return map_; }

    /// Makes a segment together with all other nodes, which ask for the same size, and waits for them.
    Result<MadeSegment> make(std::size_t count, std::size_t bytes_each);
    /// Makes this node's part only. All nodes must do so before any of them uses the segment.
    Result<MadeSegment> add(std::uint64_t bytes);
    /// Frees a segment together with all other nodes, after sync().
    Result<void> free(SegmentId segment);

    /// Memory of this node's heap: its offset.
    Result<std::uint64_t> allocate(std::size_t count, std::size_t bytes_each);
    Result<void> release(Where memory);

    /// Lets other nodes reach memory that exists: its number.
    Result<SegmentId> expose(MutableBytes memory);
    Result<void> conceal(Where memory);

    /// The memory itself, of a node of this host. Null: `where` is on another host, or names no memory, or the node is
    /// lost.
    std::byte* local(Where where, std::size_t bytes) noexcept;
    /// The same, also of a node that is lost: what it has left there.
    std::byte* mapped(Where where, std::size_t bytes) noexcept;
    /// An error if `where` names no memory, as far as this node knows.
    Result<void> check(const char* what, Where where, std::uint64_t bytes) const;

private:
    Dispatcher& dispatcher_;
    MemoryMap& map_;
};

} // namespace kumi::engine
