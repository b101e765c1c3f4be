#pragma once

// A ring of cache lines in shared memory, for one writer and one reader. A record takes one or more consecutive lines,
// so it is filled and read in place. The first eight bytes of its first line are its header. A header that is not zero
// is the ready flag: a small message travels in the cache line that announces it.
//
// Invariants
//  - The reader reads only the header at its head. The writer clears the header behind a record before it publishes the
//    record, so the reader never takes old payload for a header.
//  - A record never wraps. Where it would, a skip record fills the end of the ring, published together with it.
//  - The reader gives lines back in steps of a quarter of the ring. A record is at most a quarter of the ring, so a
//    writer that finds no room will get at least one such step.
//
// The writer writes headers, the reader writes `consumed`; heads and tails are private.

#include "kumi/base/assert.hpp"
#include "kumi/base/sync/memory_policy.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kumi::base {

/// What a record's header says, in one word. Never zero for a record.
struct RecordHeader {
    std::uint32_t bytes = 0; // for the user of the ring
    std::uint16_t lines = 0; // length of the record, header included
    std::uint16_t kind = 0;  // for the user of the ring; 0 means no record, `skip` is for the ring itself

    static constexpr std::uint16_t skip = 0xffff;

    std::uint64_t word() const noexcept {
        return std::uint64_t{bytes} | std::uint64_t{lines} << 32 | std::uint64_t{kind} << 48;
    }
    static RecordHeader from(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word), static_cast<std::uint16_t>(word >> 32),
                static_cast<std::uint16_t>(word >> 48)};
    }
};

/// The part of a ring that the reader writes. One cache line in shared memory; all zero is an empty ring.
template <class Memory>
struct alignas(64) RingControl {
    typename Memory::template Atomic<std::uint64_t> consumed{0};     // lines given back since the beginning
    typename Memory::template Atomic<std::uint32_t> writer_waits{0}; // the writer sleeps until there is room
};

/// One line of a ring in real memory.
struct alignas(64) RingLine {
    std::atomic<std::uint64_t> header;
    std::byte payload[56];
};
static_assert(sizeof(RingLine) == 64);

/// The longest record of a ring, in lines.
constexpr std::uint32_t record_lines_max(std::size_t ring_lines) noexcept {
    return static_cast<std::uint32_t>(ring_lines / 4);
}

/// The sending end.
template <class Memory, class Line>
class RingWriter {
public:
    RingWriter(std::span<Line> lines, RingControl<Memory>& control) noexcept
        : lines_(lines.data()), control_(&control), capacity_(static_cast<std::uint32_t>(lines.size())) {
        KUMI_ASSERT(std::has_single_bit(lines.size()) && lines.size() >= 4);
    }

    /// Reserves lines for a record, which the caller fills behind the header and publishes by commit(). Null when the
    /// ring is full. A later try_reserve() replaces a reservation that was not committed.
    Line* try_reserve(std::uint32_t count) noexcept {
        KUMI_ASSERT(count > 0 && count <= record_lines_max(capacity_));
        const std::uint32_t skipped = skipped_before(count);
        if (!has_room(skipped + count)) return nullptr;
        skipped_ = skipped;
        reserved_ = count;
        return &lines_[index(tail_ + skipped)];
    }

    /// Publishes the reserved record.
    void commit(std::uint16_t kind, std::uint32_t bytes) noexcept {
        const std::uint64_t start = tail_ + skipped_;
        const RecordHeader record{bytes, static_cast<std::uint16_t>(reserved_), kind};
        if (start + reserved_ != cleared_) clear(start + reserved_);
        if (skipped_ == 0) {
            // Release: partner of the acquire in front(): a reader that sees the header sees the payload.
            lines_[index(start)].header.store(record.word(), std::memory_order_release);
        } else {
            const RecordHeader skip{0, static_cast<std::uint16_t>(skipped_), RecordHeader::skip};
            // Relaxed: the reader reads this header only after the skip record, whose release orders it.
            lines_[index(start)].header.store(record.word(), std::memory_order_relaxed);
            // Release: partner of the acquire in front().
            lines_[index(tail_)].header.store(skip.word(), std::memory_order_release);
        }
        tail_ = start + reserved_;
        // Most records take one line: clear the header behind the next record now, while no reader waits for it.
        if (fits(lines_ahead)) {
            clear(tail_ + 1);
            __builtin_prefetch(&lines_[index(tail_ + lines_ahead)], 1);
        }
    }

    /// Announces that the writer sleeps until `count` lines fit. False: they fit already, so the writer must not sleep.
    /// A reservation stays as it is.
    bool wait_for_room(std::uint32_t count) noexcept {
        // Relaxed: the full fence orders it before the check; partner: the fence in give_back().
        control_->writer_waits.store(1, std::memory_order_relaxed);
        Memory::full_fence();
        if (!has_room(skipped_before(count) + count)) return true;
        stop_waiting();
        return false;
    }

    /// Refuses every reservation from now on: the reader is gone. A record that is reserved may still be committed, and
    /// nobody reads it.
    void close() noexcept { tail_ += closed_lead; }

    // Relaxed: a reader that still sees the old value wakes the writer once too often, which does no harm.
    void stop_waiting() noexcept { control_->writer_waits.store(0, std::memory_order_relaxed); }

private:
    std::uint32_t index(std::uint64_t position) const noexcept {
        return static_cast<std::uint32_t>(position) & (capacity_ - 1);
    }
    void clear(std::uint64_t position) noexcept {
        // Relaxed: ordered before the record in front of it by that record's release.
        lines_[index(position)].header.store(0, std::memory_order_relaxed);
        cleared_ = position;
    }
    /// The number of lines that are skipped at the end of the ring because a record of `count` lines does not fit.
    std::uint32_t skipped_before(std::uint32_t count) const noexcept {
        const std::uint32_t at = index(tail_);
        return count == 1 || at + count <= capacity_ ? 0 : capacity_ - at;
    }
    bool has_room(std::uint32_t count) noexcept {
        if (fits(count + 1)) return true; // one more: the header behind the record is cleared
        // Acquire: partner of the release in give_back(): the reader is done with the lines that the writer overwrites.
        consumed_ = control_->consumed.load(std::memory_order_acquire);
        return fits(count + 1);
    }
    bool fits(std::uint64_t count) const noexcept { return tail_ - consumed_ + count <= capacity_; }

    static constexpr std::uint32_t lines_ahead = 4; // fetched for writing before they are needed
    /// So far ahead of what was consumed is the tail of a closed ring: nothing fits, and no check of its own is needed.
    /// A multiple of every capacity, so places stay what they are.
    static constexpr std::uint64_t closed_lead = std::uint64_t{1} << 62;

    Line* lines_;
    RingControl<Memory>* control_;
    std::uint64_t tail_ = 0;     // where the next record starts; counts up for ever
    std::uint64_t cleared_ = 0;  // the header here is zero; at the tail it always is
    std::uint64_t consumed_ = 0; // the last value read from control_->consumed
    std::uint32_t capacity_;
    std::uint32_t skipped_ = 0;  // lines of the skip record before the reserved one
    std::uint32_t reserved_ = 0; // lines of the reserved record
};

/// The receiving end.
template <class Memory, class Line>
class RingReader {
public:
    RingReader(std::span<Line> lines, RingControl<Memory>& control) noexcept
        : lines_(lines.data()), control_(&control), capacity_(static_cast<std::uint32_t>(lines.size())) {}

    /// True when there is no record yet. Cheap: orders no memory accesses.
    bool empty() const noexcept {
        // Relaxed: front() is asked before anything of a record is read.
        return lines_[index(head_)].header.load(std::memory_order_relaxed) == 0;
    }

    /// The header of the oldest record. Its kind is 0 when there is none. The record stays until pop().
    RecordHeader front() noexcept {
        RecordHeader header = look();
        if (header.kind == RecordHeader::skip) [[unlikely]] {
            head_ += header.lines;
            header = look(); // published together with the skip
        }
        return header;
    }

    /// The first line of the record that front() announced.
    Line& line() const noexcept { return lines_[index(head_)]; }

    /// Removes the oldest record. True when the writer sleeps until there is room: the caller must wake it.
    bool pop(RecordHeader header) noexcept {
        head_ += header.lines;
        if (head_ - given_back_ < capacity_ / 4) return false;
        return give_back();
    }

private:
    RecordHeader look() const noexcept {
        // Acquire: partner of the release in commit().
        return RecordHeader::from(lines_[index(head_)].header.load(std::memory_order_acquire));
    }

    bool give_back() noexcept {
        given_back_ = head_;
        // Release: partner of the acquire in try_reserve().
        control_->consumed.store(head_, std::memory_order_release);
        Memory::full_fence(); // partner: the fence in wait_for_room(): one of the two sides sees the other's store
        // Acquire: partner of the fence in wait_for_room(): a reader that sees `writer_waits` sees the doorbell asleep.
        return control_->writer_waits.load(std::memory_order_acquire) != 0;
    }

    std::uint32_t index(std::uint64_t position) const noexcept {
        return static_cast<std::uint32_t>(position) & (capacity_ - 1);
    }

    Line* lines_;
    RingControl<Memory>* control_;
    std::uint64_t head_ = 0;       // the oldest record; counts up for ever
    std::uint64_t given_back_ = 0; // the last value stored in control_->consumed
    std::uint32_t capacity_;
};

} // namespace kumi::base
