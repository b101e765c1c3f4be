#pragma once

#include "kumi/base/sync/doorbell.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kumi::device::shmem {

/// How much memory the nodes of one host share. The defaults fit from 2 to some hundred nodes.
struct Options {
    /// For the rings of all pairs together, which hold small messages. A ring has at least 2 KiB and at most 64 KiB.
    std::size_t rings_bytes_max = std::size_t{64} << 20;
    /// For the buffers of all nodes together, which hold large messages. A node has at least 256 KiB, which is also the
    /// limit of its largest message.
    std::size_t buffers_bytes_max = std::size_t{256} << 20;
    /// For the buffers of one node.
    std::size_t node_buffers_bytes_max = std::size_t{16} << 20;
    /// Addresses (not memory) per node for RemoteMemory: its window.
#if defined(__SANITIZE_THREAD__)
    // ThreadSanitizer has 1.5 TiB of addresses for the windows of all nodes
    std::size_t exposed_bytes_max = std::size_t{1} << 30;
#else
    std::size_t exposed_bytes_max = std::size_t{16} << 30;
#endif
    /// Which side pays for the fence between a record and the sleep of its reader. Unset: the reader, except where
    /// there are more nodes than cores or the system has no membarrier(2).
    std::optional<base::Fencing> fencing;
};

} // namespace kumi::device::shmem
