#include "kumi/group/plan/circulant.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <array>
#include <bit>

// Every rank is a sum of skips, taken greedily from the largest. The index of the last skip of the sum is the rank's
// base block: the first block that reaches the rank, along the path that the sum describes. In round k rank r needs a
// block from a rank between r - skip[k+1] and r - skip[k], a different block in each round: the base block of one of
// these ranks. The search descends the greedy sums, largest skip first, and takes each block once, at the first rank
// that is not too far. It takes O(log p) steps (Träff, "Optimal broadcast schedules in logarithmic time"). What a rank
// sends is what the receiving rank receives, so the send schedule takes O(log p) such searches: about a microsecond for
// some hundred members.

namespace kumi::group {
namespace {

constexpr int log2_max = 32; // of a Node

/// The rank after `rank` by `skip`, modulo `members`.
Node after(Node rank, Node skip, Node members) noexcept {
    return static_cast<Node>((std::uint64_t{rank} + skip) % members);
}

/// Finds the receive schedule of a rank.
class Search {
public:
    Search(const std::vector<Node>& skips, Node rank) : skips_(skips), log2_(static_cast<int>(skips.size()) - 1) {
        for (int block = 0; block <= log2_; ++block) next(block) = block - 1, previous(block) = block + 1;
        next(log2_ + 1) = log2_;
        const int base = base_block(rank);
        remove(base);
        // One time around the circle, so that the ranks before this one are below it.
        target_ = std::int64_t{skips_.back()} + rank;
        bound_ = 2 * std::int64_t{skips_.back()};
        descend(0, next(log2_ + 1));
        KUMI_ASSERT(found_ == log2_);
        for (int k = 0; k < log2_; ++k) {
            std::int32_t& block = blocks_[static_cast<std::size_t>(k)];
            block = block == log2_ ? base : block - log2_;
        }
    }

    std::int32_t block(std::size_t k) const noexcept { return blocks_[k]; }

private:
    /// The index of the last skip in the greedy sum; log2_ for rank 0, which has none.
    int base_block(Node rank) const noexcept {
        std::int64_t left = rank;
        for (int k = log2_ - 1; k >= 0; --k) {
            if (left == skip(k)) return k;
            if (left > skip(k)) left -= skip(k);
        }
        return log2_;
    }

    /// Takes what is at greedy sums that start with `begin` and go on with skips from `block` down.
    void descend(std::int64_t begin, int block) {
        for (; block >= 0 && found_ < log2_; block = next(block)) {
            const std::int64_t place = begin + skip(block);
            if (place > target_ - skip(found_) || place >= bound_) continue;
            if (place <= target_ - skip(found_ + 1)) descend(place, block);
            if (found_ == log2_ || begin > target_ - skip(found_ + 1)) return;
            bound_ = place;
            blocks_[static_cast<std::size_t>(found_++)] = block;
            remove(block);
        }
    }

    void remove(int block) noexcept {
        next(previous(block)) = next(block);
        if (next(block) >= 0) previous(next(block)) = previous(block);
    }

    std::int64_t skip(int k) const noexcept { return skips_[static_cast<std::size_t>(k)]; }
    int& next(int block) noexcept { return next_[static_cast<std::size_t>(block)]; }
    int& previous(int block) noexcept { return previous_[static_cast<std::size_t>(block)]; }

    const std::vector<Node>& skips_;
    int log2_;
    std::int64_t target_ = 0;
    std::int64_t bound_ = 0; // places are taken downward
    int found_ = 0;          // rounds for which a block is known
    std::array<std::int32_t, log2_max> blocks_{};
    // A list of the blocks that were not taken, from the highest on; its head is at log2_ + 1.
    std::array<int, log2_max + 2> next_{};
    std::array<int, log2_max + 2> previous_{};
};

} // namespace

Circulant::Circulant(Node members, Node rank)
    : members_(members), rank_(rank), log2_(static_cast<std::uint32_t>(std::bit_width(members - 1))) {
    KUMI_ASSERT(rank < members);
    skips_.resize(log2_ + 1);
    skips_[log2_] = members;
    for (std::size_t k = log2_; k-- > 0;) skips_[k] = skips_[k + 1] - skips_[k + 1] / 2;
    receives_.resize(log2_);
    sends_.resize(log2_);
    const Search own(skips_, rank);
    for (std::size_t k = 0; k < log2_; ++k) {
        receives_[k] = own.block(k);
        sends_[k] = Search(skips_, after(rank, skips_[k], members)).block(k);
    }
}

Circulant::Step Circulant::step(std::uint32_t round, std::uint32_t blocks) const noexcept {
    KUMI_ASSERT(round < rounds(blocks));
    // Begins in the midst of a turn, so that the last turn is a whole one and ends with the last block.
    const std::uint32_t shift = (log2_ - (blocks - 1) % log2_) % log2_;
    const std::uint64_t shifted = std::uint64_t{round} + shift;
    const std::size_t k = shifted % log2_;
    const auto base = static_cast<std::int64_t>(shifted - k) - shift;
    const auto block = [&](std::int32_t entry) -> std::optional<std::uint32_t> {
        if (base + entry < 0) return std::nullopt;
        return static_cast<std::uint32_t>(std::min<std::int64_t>(base + entry, blocks - 1));
    };
    Step step;
    step.to = after(rank_, skips_[k], members_);
    step.from = after(rank_, members_ - skips_[k], members_);
    if (step.to != 0) step.send = block(sends_[k]);
    if (rank_ != 0) step.receive = block(receives_[k]);
    return step;
}

} // namespace kumi::group
