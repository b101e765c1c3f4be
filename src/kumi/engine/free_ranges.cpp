#include "kumi/engine/free_ranges.hpp"

#include <iterator>

namespace kumi::engine {

void FreeRanges::add(std::uint64_t start, std::uint64_t bytes) {
    if (bytes == 0) return;
    auto next = ranges_.lower_bound(start);
    if (next != ranges_.end() && next->first == start + bytes) {
        bytes += next->second;
        next = ranges_.erase(next);
    }
    if (next != ranges_.begin())
        if (const auto before = std::prev(next); before->first + before->second == start) {
            before->second += bytes;
            return;
        }
    ranges_.emplace(start, bytes);
}

std::optional<std::uint64_t> FreeRanges::take(std::uint64_t bytes) {
    for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
        if (range->second < bytes) continue;
        const auto [start, size] = *range;
        ranges_.erase(range);
        if (size > bytes) ranges_.emplace(start + bytes, size - bytes);
        return start;
    }
    return std::nullopt;
}

std::uint64_t FreeRanges::free_before(std::uint64_t end) const noexcept {
    auto next = ranges_.lower_bound(end);
    if (next == ranges_.begin()) return 0;
    const auto before = std::prev(next);
    return before->first + before->second == end ? before->second : 0;
}

} // namespace kumi::engine
