#pragma once

// Barriers among the nodes of one host, in memory that they share. Each sequence has a counter of arrivals, in a ring;
// who makes it full is the last, clears it for the sequence one ring later, and sees to it that the barrier is
// completed: at once, or, if nodes of other hosts belong to it too, when those have come. `completed` tells all nodes.
//
// Invariants
//  - A node arrives at all sequences in order, each once. So a barrier is complete only after all before it, and one
//    number tells of all; it only grows.
//  - A counter is clear before anybody may count on it again: the last node cleared it inside arrive(), so before it
//    arrived at any later sequence. Who sees one of those complete sees it cleared, whoever said so.

#include "kumi/base/assert.hpp"
#include "kumi/base/sync/memory_policy.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace kumi::engine {

/// The shared part; all zero is "nobody has come to sequence 0".
template <class Memory, std::uint32_t ring = 64>
struct HostBarrierState {
    static_assert(std::has_single_bit(ring), "sequences wrap at a multiple of the ring");
    struct alignas(64) Line {
        typename Memory::template Atomic<std::uint32_t> word{0};
    };

    Line completed;                  // the first sequence that is not complete
    std::array<Line, ring> arrivals; // by sequence
};

enum class Arrival : std::uint8_t {
    early, // not counted: too far ahead of those complete; try again later
    counted,
    last, // all nodes of the host have come, here and at all before: see to it that complete() is called
};

/// One node's view of it. Sequences start at 0 and wrap.
template <class Memory, std::uint32_t ring = 64>
class HostBarrier {
public:
    using State = HostBarrierState<Memory, ring>;

    /// `nodes` of them are on this host, and all use it.
    HostBarrier(State& state, std::uint32_t nodes) noexcept : state_(&state), nodes_(nodes) { KUMI_ASSERT(nodes > 0); }

    /// This node has come to `sequence`: the one after its last. One thread at a time. Exactly one of the host's nodes
    /// is told that it is the last, and sees all that the others did before they arrived.
    Arrival arrive(std::uint32_t sequence) noexcept {
        const std::uint32_t ahead = sequence - completed();
        KUMI_ASSERT(ahead < std::uint32_t{1} << 31); // none is complete without this node
        if (ahead >= ring) return Arrival::early;
        auto& arrivals = state_->arrivals[sequence % ring].word;
        // Both partners are this same operation on the other nodes. Release: the last sees what this node did. Acquire:
        // if this is the last, it sees what they did.
        if (arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 != nodes_) return Arrival::counted;
        // Relaxed: who counts here next has seen this sequence complete, by the acquire in completed().
        arrivals.store(0, std::memory_order_relaxed);
        return Arrival::last;
    }

    /// Makes known that `sequence`, and so all before it, is complete. By any node that knows it: from Arrival::last,
    /// or from a message of one that knew. In any order, and as often as one likes.
    void complete(std::uint32_t sequence) noexcept {
        auto& word = state_->completed.word;
        std::uint32_t known = word.load(std::memory_order_relaxed); // a guess, which the exchange checks
        while (static_cast<std::int32_t>(sequence - known) >= 0) {
            // Release: partner of the acquire in completed(): who sees it complete sees what all did before they
            // arrived. Relaxed on failure: only a better guess.
            if (word.compare_exchange_strong(known, sequence + 1, std::memory_order_release, std::memory_order_relaxed))
                return;
        }
    }

    /// The first sequence that is not complete.
    std::uint32_t completed() const noexcept {
        // Acquire: partner of the release in complete().
        return state_->completed.word.load(std::memory_order_acquire);
    }

    /// All have arrived, and what they did before is visible. For those that this node arrived at, less than 2^31 ago.
    bool is_complete(std::uint32_t sequence) const noexcept {
        return static_cast<std::int32_t>(sequence - completed()) < 0;
    }

private:
    State* state_;
    std::uint32_t nodes_;
};

} // namespace kumi::engine
