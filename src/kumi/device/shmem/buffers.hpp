#pragma once

// The buffers of one node for large messages. The node hands them out, a receiver hands them back from another
// process, in whatever order it is done with them. Which units are taken only the owner knows; what comes back is
// a stack in shared memory that receivers push to and the owner empties at once, so there is nothing to lock and
// no node can be reused under a pusher's eyes.

#include "kumi/base/bitmap.hpp"
#include "kumi/device/shmem/segment.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::device::shmem {

/// The owner's side.
class BufferHeap {
public:
    BufferHeap(Segment& segment, Node self);

    /// The first unit of a buffer of at least `bytes`: the lowest free one, which is the warmest in the caches.
    /// Nothing when no piece is that long.
    std::optional<std::uint32_t> try_take(std::size_t bytes) noexcept;

    /// Takes a buffer back that was never sent.
    void give_back(std::uint32_t unit) noexcept;

    std::byte* address(std::uint32_t unit) const noexcept { return memory_ + std::size_t{unit} * unit_bytes; }

    /// Says that the owner is going to sleep until a buffer of `bytes` can be had. False: it can be had already.
    bool wait_for(std::size_t bytes) noexcept;
    void stop_waiting() noexcept;

    std::size_t units_free() noexcept;

private:
    void collect() noexcept;

    Mailbox* mailbox_;
    std::span<std::atomic<std::uint32_t>> links_;
    std::byte* memory_;
    base::Bitmap taken_;
    std::vector<std::uint32_t> lengths_; // by first unit: units of the buffer
};

/// A receiver's side: hands a buffer of `owner` back. True when the owner sleeps until one comes: wake it.
bool return_buffer(Segment& segment, Node owner, std::uint32_t unit) noexcept;

} // namespace kumi::device::shmem
