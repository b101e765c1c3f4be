#pragma once

// An optional power of a device: reading and writing the memory of other nodes without their help.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/pm/node.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::pm {

/// Memory of this node that the others reach at `offset`.
struct Exposed {
    MutableBytes bytes; // zeroed, page-aligned
    std::uint64_t offset;
};

/// The exposed memory of all nodes of a channel. Offsets are the owner's; equal sequences of expose() calls give
/// equal offsets on all nodes. Ordering against messages: a message sent after a put returned true, to the same
/// node, is handled after the put's bytes are there.
class RemoteMemory {
public:
    /// Sets aside and exposes zeroed memory of this node, for the life of the channel.
    virtual Result<Exposed> expose(std::size_t bytes) = 0;

    /// Makes what `node` exposes reachable from here. Once, before the calls below name that node.
    virtual Result<void> reach(Node node) = 0;

    /// Copies into the memory of `to`. False is back-pressure. The range must have been exposed there.
    virtual bool try_put(Node to, std::uint64_t offset, Bytes source) noexcept = 0;

    /// Copies out of the memory of `from`; done when it answers true.
    virtual bool try_get(Node from, std::uint64_t offset, MutableBytes target) noexcept = 0;

    /// The exposed memory of `node` in this process's own address space, for plain loads and stores; null where
    /// the device cannot map it.
    virtual std::byte* direct(Node node, std::uint64_t offset) noexcept = 0;

protected:
    ~RemoteMemory() = default;
};

} // namespace kumi::pm
