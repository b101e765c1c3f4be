#pragma once

// How a reader of many rings looks only at those that matter, and sleeps, without ever missing a record.
//
// The reader owns a bitmap of attention in shared memory, one bit per writer. A set bit means "the reader is
// going to look at this ring". A writer publishes its record and then looks at its bit: set, and it is done,
// which is the usual case and costs one load of a line that nobody writes. Not set, and it sets the bit and
// wakes the reader if that sleeps. Only the reader clears bits: of rings that were quiet, and of all when it
// falls asleep; then it looks at those rings once more.
//
// That is Dekker's pattern twice (record against bit, bit against asleep): each side writes, fences, then reads
// what the other wrote, so at least one of them sees the other. The first fence would cost the writer on every
// message. So the reader pays for both: its heavy_fence() interrupts the writers' cores, and the writer's
// fence is a compiler fence. Where readers sleep all the time (more nodes than cores), or the system lacks
// membarrier, the writer fences and the reader does so too; `Fencing` says which, and both must agree.

#include "kumi/base/memory_policy.hpp"

#include <cstdint>
#include <span>

namespace kumi::base {

enum class Fencing : std::uint32_t { by_reader, by_writer };

/// The shared part besides the attention words; all zero is "awake".
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

    /// Call after each published record. True: the reader slept and is now awake in name: wake it in fact.
    bool press() noexcept {
        if (fencing_ == Fencing::by_reader) {
            Memory::light_fence(); // partner: heavy_fence() in DoorbellKeeper::fence()
        } else {
            Memory::full_fence(); // partner: full_fence() in DoorbellKeeper::fence()
        }
        // Relaxed: ordered by the fence above.
        if ((word_->load(std::memory_order_relaxed) & mask_) != 0) [[likely]]
            return false;
        // Release (in seq_cst): partner of the acquire in fresh(): who sees the bit sees the record.
        word_->fetch_or(mask_, std::memory_order_seq_cst);
        return wake(*state_);
    }

    /// Wakes a sleeper for another reason than a record. True as in press().
    static bool wake(DoorbellState<Memory>& state) noexcept {
        if (state.asleep.load(std::memory_order_seq_cst) == 0) return false;
        return state.asleep.exchange(0, std::memory_order_seq_cst) != 0; // of several wakers one pays
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

    /// The bits of one word that are set besides those `known`.
    std::uint64_t attention(std::size_t word, std::uint64_t known = 0) const noexcept {
        // Relaxed: nothing new is the usual answer, and an acquire would hold up whatever the poller does next.
        if ((words_[word].load(std::memory_order_relaxed) & ~known) == 0) return 0;
        // Acquire: partner of the fetch_or in press().
        return words_[word].load(std::memory_order_acquire) & ~known;
    }

    /// Clears bits. After fence() each of their rings must be looked at once more, and if there is a
    /// record, watch() again.
    void unwatch(std::size_t word, std::uint64_t bits) noexcept {
        // Relaxed: fence() orders it before the last look.
        words_[word].fetch_and(~bits, std::memory_order_relaxed);
    }

    // Relaxed: only this reader clears bits, and a writer that misses this one sets it again.
    void watch(std::size_t word, std::uint64_t bits) noexcept {
        words_[word].fetch_or(bits, std::memory_order_relaxed);
    }

    /// Says "asleep" from now on. Then unwatch() everything, fence(), look once more, and sleep or wake_up().
    void fall_asleep() noexcept { state_->asleep.store(1, std::memory_order_seq_cst); }

    // Relaxed: a writer that still sees 1 wakes us once too often.
    void wake_up() noexcept { state_->asleep.store(0, std::memory_order_relaxed); }

    void fence() noexcept {
        if (fencing_ == Fencing::by_reader) Memory::heavy_fence();
        // Also when the reader pays: a bit set by a writer is ordered against `asleep` by seq_cst operations there.
        Memory::full_fence();
    }

    DoorbellState<Memory>& state() noexcept { return *state_; }

private:
    DoorbellState<Memory>* state_;
    std::span<Word> words_;
    Fencing fencing_;
};

} // namespace kumi::base
