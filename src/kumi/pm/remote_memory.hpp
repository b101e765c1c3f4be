#pragma once

// Remote memory, an optional interface of devices: access to the memory of other nodes without their participation.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::pm {

/// Every node has a window of addresses, of equal size on all nodes that reach each other's memory. What a node exposes
/// at an offset of its window, other nodes access at that offset by plain loads and stores. The users agree on what is
/// at which offset. Ordering: a message is handled after the stores that its sender made into the receiver's memory
/// before. One thread at a time uses this; another thread may use the channel meanwhile, because exposing much memory
/// takes long.
class RemoteMemory {
public:
    virtual std::size_t window_bytes() const noexcept = 0;

    /// Provides memory of this node at `offset`, which must be a multiple of the page size. Memory that was not exposed
    /// before is zero. Exposing memory twice is harmless.
    virtual Result<MutableBytes> expose(std::uint64_t offset, std::size_t bytes) = 0;

    /// Returns memory of this node to the system, in whole pages. No node may use it until it is exposed again.
    virtual void conceal(std::uint64_t offset, std::size_t bytes) noexcept = 0;

    /// Makes the memory of `node` accessible, or says why direct() would answer null. No error for nodes whose memory
    /// can never be reached.
    virtual Result<void> reach(Node node) = 0;

    /// The address in this process of `offset` in the window of `node`. It stays valid for the life of the channel.
    /// There is memory where that node has exposed some. Null where this node cannot map the memory of that node.
    virtual std::byte* direct(Node node, std::uint64_t offset) noexcept = 0;

protected:
    ~RemoteMemory() = default;
};

} // namespace kumi::pm
