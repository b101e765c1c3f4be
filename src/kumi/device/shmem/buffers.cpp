#include "kumi/device/shmem/buffers.hpp"

#include "kumi/base/assert.hpp"

namespace kumi::device::shmem {
namespace {

constexpr Node nobody = ~Node{0};

/// In Mailbox::returned: the newest buffer's link names the one before it. Where there is none, which is the usual
/// case, the link is neither written nor read: each would be a cache miss that the next message waits for.
constexpr std::uint32_t has_link = std::uint32_t{1} << 31;

std::uint32_t units_for(std::size_t bytes) noexcept {
    return static_cast<std::uint32_t>((bytes + unit_bytes - 1) / unit_bytes);
}

} // namespace

BufferHeap::BufferHeap(Segment& segment, Node self)
    : mailbox_(&segment.mailbox(self)), links_(segment.links(self)), memory_(segment.buffers(self)),
      taken_(segment.layout().units()), lengths_(segment.layout().units()),
      receivers_(segment.layout().units()) {}

std::optional<std::uint32_t> BufferHeap::try_take(std::size_t bytes) noexcept {
    const std::uint32_t count = units_for(bytes);
    collect();
    const auto start = taken_.find_clear_run(count);
    if (!start) return std::nullopt;
    const auto unit = static_cast<std::uint32_t>(*start);
    taken_.set_range(unit, count);
    lengths_[unit] = count;
    receivers_[unit] = nobody;
    return unit;
}

void BufferHeap::give_back(std::uint32_t unit) noexcept {
    KUMI_ASSERT(unit < lengths_.size() && lengths_[unit] != 0);
    taken_.clear_range(unit, lengths_[unit]);
    lengths_[unit] = 0;
}

void BufferHeap::reclaim(Node receiver) noexcept {
    collect(); // those that it did return
    for (std::uint32_t unit = 0; unit < lengths_.size(); ++unit)
        if (lengths_[unit] != 0 && receivers_[unit] == receiver) give_back(unit);
}

void BufferHeap::collect() noexcept {
    // Relaxed: only a hint; an empty stack is the usual case and must not cost an atomic exchange.
    if (mailbox_->returned.load(std::memory_order_relaxed) == 0) return;
    // Acquire: partner of the release in return_buffer(): the receivers are done with these buffers, and the links are
    // written.
    std::uint32_t top = mailbox_->returned.exchange(0, std::memory_order_acquire);
    while (top != 0) {
        const std::uint32_t unit = (top & ~has_link) - 1;
        // Relaxed: ordered by the exchange. Read before the unit is free for a new buffer.
        top = (top & has_link) != 0 ? links_[unit].load(std::memory_order_relaxed) : 0;
        give_back(unit);
    }
}

bool BufferHeap::wait_for(std::size_t bytes) noexcept {
    // Relaxed: the fence orders it before the check; partner: the fence in return_buffer().
    mailbox_->buffer_wanted.store(1, std::memory_order_relaxed);
    Memory::full_fence();
    collect();
    if (!taken_.find_clear_run(units_for(bytes))) return true;
    stop_waiting();
    return false;
}

// Relaxed: a receiver that sees the old value wakes the owner once too often.
void BufferHeap::stop_waiting() noexcept { mailbox_->buffer_wanted.store(0, std::memory_order_relaxed); }

std::size_t BufferHeap::units_free() noexcept {
    collect();
    return taken_.size() - taken_.count();
}

bool return_buffer(Segment& segment, Node owner, std::uint32_t unit) noexcept {
    Mailbox& mailbox = segment.mailbox(owner);
    std::atomic<std::uint32_t>& link = segment.links(owner)[unit];
    // Relaxed: a wrong guess only costs another round.
    std::uint32_t top = mailbox.returned.load(std::memory_order_relaxed);
    std::uint32_t mine = 0;
    do {
        mine = (unit + 1) | (top != 0 ? has_link : 0);
        // Relaxed: published by the exchange below.
        if (top != 0) link.store(top, std::memory_order_relaxed);
        // Release: partner of the acquire in collect().
    } while (!mailbox.returned.compare_exchange_weak(top, mine, std::memory_order_release, std::memory_order_relaxed));
    Memory::full_fence(); // partner: the fence in wait_for(): one of the two sees the other's store
    // Acquire: partner of the fence in wait_for(): a receiver that sees that the owner waits also sees that it is
    // asleep.
    return mailbox.buffer_wanted.load(std::memory_order_acquire) != 0;
}

} // namespace kumi::device::shmem
