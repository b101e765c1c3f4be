#pragma once

// Memory of this node that existed before other nodes were let in: arrays of the program, static variables. Each piece
// has a number, as segments have. The numbers of a node are its own: no other node knows what they stand for. Finding
// is for any thread; adding and removing are for one thread at a time. Pure.

#include "kumi/base/bytes.hpp"
#include "kumi/base/result.hpp"
#include "kumi/engine/global_ptr.hpp"
#include "kumi/engine/wire.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace kumi::engine {

/// Whether a number is one of exposed memory, and not of a segment, a heap or a landing.
constexpr bool is_exposed(SegmentId number) noexcept { return (number & (exposed_bit | landing_bit)) == exposed_bit; }

class Exposures {
public:
    /// Pieces that there may be at once.
    static constexpr std::uint32_t most = 1024;

    /// An error: there are too many. The number of a removed piece is used again after a thousand million others.
    Result<SegmentId> add(MutableBytes memory);
    /// False: there is no such piece (any more).
    bool remove(SegmentId number) noexcept;
    /// Null: there is no such piece, or it has no such bytes.
    std::byte* find(SegmentId number, std::uint64_t offset, std::uint64_t bytes) const noexcept {
        const Piece& piece = pieces_[number % most];
        // Acquire: partner of the release in add(). 0: no number, since each has its bit.
        if (piece.number.load(std::memory_order_acquire) != number) return nullptr;
        const std::uint64_t all = piece.bytes.load(std::memory_order_relaxed); // ordered by the number
        if (bytes > all || offset > all - bytes) return nullptr;
        return piece.start.load(std::memory_order_relaxed) + offset; // as above
    }
    /// The size of a piece, which exists.
    std::uint64_t bytes(SegmentId number) const noexcept {
        return pieces_[number % most].bytes.load(std::memory_order_relaxed);
    }

private:
    struct Piece {
        std::atomic<SegmentId> number{0}; // 0: free
        std::atomic<std::byte*> start{nullptr};
        std::atomic<std::uint64_t> bytes{0};
    };

    std::unique_ptr<Piece[]> pieces_ = std::make_unique<Piece[]>(most);
    SegmentId last_ = 0; // without its bit
    std::uint32_t count_ = 0;
};

} // namespace kumi::engine
