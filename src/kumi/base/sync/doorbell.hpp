#pragma once

// A doorbell: the reader of many rings polls only the rings in use, and sleeps when none is, without missing a record.
//
// The reader owns a bitmap in shared memory with one attention bit for each writer. A set bit means that the reader is
// going to look at that writer's ring. A writer publishes its record and then reads its bit. Usually the bit is set and
// the writer is done, at the cost of one load from a cache line that nobody writes. Otherwise the writer sets the bit
// and wakes the reader if the reader sleeps. Only the reader clears bits: those of rings that were quiet, and all of
// them when it falls asleep. After clearing bits the reader looks at their rings once more.
//
// This is Dekker's pattern twice (record against bit, bit against `asleep`): each side writes, fences, and then reads
// what the other side wrote, so at least one side sees the other. A fence for every message would cost the writer too
// much. Therefore the reader pays for both sides: its heavy_fence() interrupts the cores of the writers, and the
// writer's fence is a compiler fence. Where readers sleep often (more nodes than cores) or the system lacks membarrier,
// both sides use a full fence. `Fencing` says which, and both sides must agree.

#include "kumi/base/sync/memory_policy.hpp"

#include <cstdint>
#include <span>

namespace kumi::base {

enum class Fencing : std::uint32_t { by_reader, by_writer };

/// The shared memory of a doorbell besides its attention words. All zero means that the reader is awake.
template <class Memory>
struct DoorbellState {
    typename Memory::template Atomic<std::uint32_t> asleep{0}; // 1: the reader sleeps on this word
};

/// A writer's view of one reader's doorbell.
template <class Memory>
class DoorbellButton {
public:
    using Word = typename Memory::template Atomic<std::uint64_t>;

    DoorbellButton(DoorbellState<Memory>& state, Word& word, unsigned bit, Fencing fencing) noexcept
        : state_(&state), word_(&word), mask_(std::uint64_t{1} << bit), fencing_(fencing) {}

    /// To be called after each published record. True: the reader slept, this writer has marked it awake, and the
    /// caller must wake its thread.
    bool press() noexcept {
        if (fencing_ == Fencing::by_reader) {
            Memory::light_fence(); // partner: heavy_fence() in DoorbellKeeper::fence()
        } else {
            Memory::full_fence(); // partner: full_fence() in DoorbellKeeper::fence()
        }
        // Relaxed: ordered by the fence above.
        if ((word_->load(std::memory_order_relaxed) & mask_) != 0) [[likely]]
            return false;
        // Release (in seq_cst): partner of the acquire in attention(): a reader that sees the bit sees the record.
        word_->fetch_or(mask_, std::memory_order_seq_cst);
        return wake(*state_);
    }

    /// Tells the reader of an event that is no record, by an attention word that belongs to no writer. Several may do
    /// so at once. The answer is that of press().
    static bool announce(DoorbellState<Memory>& state, Word& word) noexcept {
        // Release (in seq_cst): partner of the acquire in take().
        word.exchange(1, std::memory_order_seq_cst);
        return wake(state);
    }

    /// Wakes the reader for another reason than a record. The answer is that of press().
    static bool wake(DoorbellState<Memory>& state) noexcept {
        if (state.asleep.load(std::memory_order_seq_cst) == 0) return false;
        return state.asleep.exchange(0, std::memory_order_seq_cst) != 0; // one of several wakers gets true
    }

private:
    DoorbellState<Memory>* state_;
    Word* word_;
    std::uint64_t mask_;
    Fencing fencing_;
};

/// The reader's own doorbell.
template <class Memory>
class DoorbellKeeper {
public:
    using Word = typename Memory::template Atomic<std::uint64_t>;

    DoorbellKeeper(DoorbellState<Memory>& state, std::span<Word> words, Fencing fencing) noexcept
        : state_(&state), words_(words), fencing_(fencing) {}

    std::size_t word_count() const noexcept { return words_.size(); }

    /// The bits of one word that are set and not in `known`.
    std::uint64_t attention(std::size_t word, std::uint64_t known = 0) const noexcept {
        // Relaxed: usually nothing is new, and an acquire would delay what the reader does next.
        if ((words_[word].load(std::memory_order_relaxed) & ~known) == 0) return 0;
        // Acquire: partner of the fetch_or in press().
        return words_[word].load(std::memory_order_acquire) & ~known;
    }

    /// Clears bits. After that the reader must call fence() and look at each of these rings once more; if one has a
    /// record, the reader calls watch() for it again.
    void unwatch(std::size_t word, std::uint64_t bits) noexcept {
        // Relaxed: fence() orders it before the last look.
        words_[word].fetch_and(~bits, std::memory_order_relaxed);
    }

    /// Clears a word that announce() set. After that the reader sees what was stored before each announcement so far;
    /// a later one sets the word again.
    void take(std::size_t word) noexcept {
        // Acquire: partner of the exchange in announce(). Both change the word in one step, so none is missed.
        words_[word].exchange(0, std::memory_order_acquire);
    }

    // Relaxed: only this reader clears bits, and a writer that does not see this one set sets it itself.
    void watch(std::size_t word, std::uint64_t bits) noexcept {
        words_[word].fetch_or(bits, std::memory_order_relaxed);
    }

    /// Marks the reader asleep. After that the reader calls unwatch() for all bits and fence(), looks at all rings once
    /// more, and then either sleeps or calls wake_up().
    void fall_asleep() noexcept { state_->asleep.store(1, std::memory_order_seq_cst); }

    // Relaxed: a writer that still sees 1 wakes the reader once too often, which does no harm.
    void wake_up() noexcept { state_->asleep.store(0, std::memory_order_relaxed); }

    void fence() noexcept {
        if (fencing_ == Fencing::by_reader) Memory::heavy_fence();
        // Also when the reader pays: the seq_cst operations of writers order their bit against `asleep`.
        Memory::full_fence();
    }

    DoorbellState<Memory>& state() noexcept { return *state_; }

private:
    DoorbellState<Memory>* state_;
    std::span<Word> words_;
    Fencing fencing_;
};

} // namespace kumi::base
