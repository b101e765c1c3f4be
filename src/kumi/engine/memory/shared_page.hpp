#pragma once

// The start of every node's window: what nodes of one host tell each other by loads and stores.

#include "kumi/engine/barrier/host_barrier.hpp"

#include <atomic>
#include <cstdint>

namespace kumi::engine {

struct SharedPage {
    /// Not zero: the node sleeps, and watches flags that others set by plain stores. Who sets one then takes this back
    /// to zero and nudges it by a message. Dekker's pattern: the setter stores the flag, fences, and looks here; the
    /// sleeper stores here, fences, and looks at the flag.
    alignas(64) std::atomic<std::uint32_t> watching;
    /// Of its heap.
    alignas(64) std::atomic<std::uint64_t> heap_bytes;
    /// How many barriers of all nodes this node has come to; wraps. Others look at it when the node is lost.
    alignas(64) std::atomic<std::uint32_t> barriers_arrived;
    /// Of all nodes of the host; the first one's counts.
    HostBarrierState<base::MachineMemory> barrier;
};

inline constexpr std::uint64_t shared_page_bytes = 64 << 10;
static_assert(sizeof(SharedPage) <= shared_page_bytes);

} // namespace kumi::engine
