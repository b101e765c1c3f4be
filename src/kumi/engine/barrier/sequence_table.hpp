#pragma once

// The sequences of many sets of nodes that have no barrier under way: 12 bytes for each set, in one open hash table.
// Sets stay, because other members of a set go on counting its barriers. Pure.

#include "kumi/base/assert.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace kumi::engine {

class SequenceTable {
public:
    /// Sets that the table has.
    std::size_t size() const noexcept { return size_; }

    std::optional<std::uint32_t> find(std::uint64_t set) const noexcept {
        if (size_ == 0) return std::nullopt;
        const std::size_t place = place_of(set);
        return sets_[place] == set ? std::optional(sequences_[place]) : std::nullopt;
    }
    /// `set` is not 0, and its bits are random, as those of Barriers::set_of() are.
    void store(std::uint64_t set, std::uint32_t sequence) {
        KUMI_ASSERT(set != 0);
        if ((size_ + 1) * 4 > sets_.size() * 3) grow();
        const std::size_t place = place_of(set);
        size_ += sets_[place] == set ? 0 : 1;
        sets_[place] = set;
        sequences_[place] = sequence;
    }

private:
    /// Where `set` is, or would be: some place is always free.
    std::size_t place_of(std::uint64_t set) const noexcept {
        const std::size_t mask = sets_.size() - 1;
        std::size_t place = set & mask;
        while (sets_[place] != 0 && sets_[place] != set) place = (place + 1) & mask;
        return place;
    }
    void grow() {
        SequenceTable larger;
        larger.sets_.resize(sets_.empty() ? 64 : sets_.size() * 2);
        larger.sequences_.resize(larger.sets_.size());
        for (std::size_t i = 0; i < sets_.size(); ++i)
            if (sets_[i] != 0) larger.store(sets_[i], sequences_[i]);
        *this = std::move(larger);
    }

    std::vector<std::uint64_t> sets_; // by place; 0: free
    std::vector<std::uint32_t> sequences_;
    std::size_t size_ = 0;
};

} // namespace kumi::engine
