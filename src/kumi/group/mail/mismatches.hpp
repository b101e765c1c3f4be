#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace kumi::group {

/// The mismatches that have made a call of this node fail, by number: each makes one call fail, not also the next one.
/// The latest ones are known.
class Mismatches {
public:
    static constexpr std::size_t count_max = 64;

    bool contains(std::uint64_t mismatch) const noexcept {
        return std::ranges::find(latest_, mismatch) != latest_.end();
    }
    void add(std::uint64_t mismatch) {
        if (contains(mismatch)) return;
        if (latest_.size() >= count_max) latest_.pop_front();
        latest_.push_back(mismatch);
    }

private:
    std::deque<std::uint64_t> latest_; // oldest first
};

} // namespace kumi::group
