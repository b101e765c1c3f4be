#pragma once

// An optional power of a device: reading and writing the memory of other nodes without their help.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::pm {

/// Every node has a window of addresses, of one size on all that reach each other's. What a node exposes at some offset
/// of its window others find there, by plain loads and stores; who is at which offset its users agree on. Ordering
/// against messages: a message sent after stores into the memory of the same node is handled after they are there. One
/// thread at a time, which need not be the one that uses the channel just then: exposing much takes long.
class RemoteMemory {
public:
    virtual std::size_t window_bytes() const noexcept = 0;

    /// Sets memory of this node aside, from `offset` on, which is a multiple of a page; what was not exposed before is
    /// zero. To expose something twice does no harm.
    virtual Result<MutableBytes> expose(std::uint64_t offset, std::size_t bytes) = 0;

    /// Gives memory of this node back to the system. Whole pages; nobody uses them until they are exposed again.
    virtual void conceal(std::uint64_t offset, std::size_t bytes) noexcept = 0;

    /// Says beforehand why direct() would answer null. Nothing to say of nodes whose memory cannot be reached by any
    /// means.
    virtual Result<void> reach(Node node) = 0;

    /// The window of `node`, from `offset` on, among this process's own addresses: the same for the life of the
    /// channel. Of use where that node has exposed something. Null where this node cannot map that node's memory.
    virtual std::byte* direct(Node node, std::uint64_t offset) noexcept = 0;

protected:
    ~RemoteMemory() = default;
};

} // namespace kumi::pm
