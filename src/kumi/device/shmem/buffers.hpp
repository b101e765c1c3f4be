#pragma once

// The buffers of one node for large messages. The owner allocates them, and a receiver in another process returns them,
// in any order. Only the owner knows which units are taken. Returned buffers are a stack in shared memory that
// receivers push to and the owner empties at once, so there is no lock, and no ABA problem.

#include "kumi/base/data/bitmap.hpp"
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

    /// Allocates a buffer of at least `bytes` and returns its first unit: the lowest free one, which is most likely in
    /// the caches. Nothing if no free range is that long.
    std::optional<std::uint32_t> try_take(std::size_t bytes) noexcept;

    /// Frees a buffer that was never sent.
    void give_back(std::uint32_t unit) noexcept;
    /// The buffer goes to `receiver`, which returns it.
    void note_sent(std::uint32_t unit, Node receiver) noexcept { receivers_[unit] = receiver; }
    /// Frees the buffers that `receiver` has not returned. Requires that it is gone, and will not return them.
    void reclaim(Node receiver) noexcept;

    std::byte* address(std::uint32_t unit) const noexcept { return memory_ + std::size_t{unit} * unit_bytes; }

    /// Announces that the owner is going to sleep until a buffer of `bytes` is free. False: one is free already.
    bool wait_for(std::size_t bytes) noexcept;
    void stop_waiting() noexcept;

    std::size_t units_free() noexcept;

private:
    void collect() noexcept;

    Mailbox* mailbox_;
    std::span<std::atomic<std::uint32_t>> links_;
    std::byte* memory_;
    base::Bitmap taken_;
    std::vector<std::uint32_t> lengths_; // by first unit: number of units of the buffer; 0: no buffer begins here
    std::vector<Node> receivers_;        // by first unit, of a buffer that was sent
};

/// The receiver's side: returns a buffer of `owner`. True if the owner sleeps until one is returned, and must be woken.
bool return_buffer(Segment& segment, Node owner, std::uint32_t unit) noexcept;

} // namespace kumi::device::shmem
