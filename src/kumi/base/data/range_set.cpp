#include "kumi/base/data/range_set.hpp"

#include <algorithm>
#include <iterator>

namespace kumi::base {

void RangeSet::add(std::uint64_t start, std::uint64_t count) {
    if (count == 0) return;
    std::uint64_t end = start + count;
    auto next = ends_.upper_bound(start);
    if (next != ends_.begin() && std::prev(next)->second >= start) --next;
    while (next != ends_.end() && next->first <= end) { // these become one
        start = std::min(start, next->first);
        end = std::max(end, next->second);
        next = ends_.erase(next);
    }
    ends_.emplace(start, end);
}

void RangeSet::remove(std::uint64_t start, std::uint64_t count) {
    if (count == 0) return;
    add(start, count); // then one range has them all
    const auto around = std::prev(ends_.upper_bound(start));
    const auto [first, end] = *around;
    ends_.erase(around);
    if (first < start) ends_.emplace(first, start);
    if (start + count < end) ends_.emplace(start + count, end);
}

std::optional<std::uint64_t> RangeSet::take(std::uint64_t count) {
    for (auto range = ends_.begin(); range != ends_.end(); ++range) {
        const auto [start, end] = *range;
        if (end - start < count) continue;
        ends_.erase(range);
        if (end - start > count) ends_.emplace(start + count, end);
        return start;
    }
    return std::nullopt;
}

std::uint64_t RangeSet::missing(std::uint64_t start, std::uint64_t count) const {
    const std::uint64_t end = start + count;
    auto next = ends_.upper_bound(start);
    if (next != ends_.begin()) --next;
    for (; next != ends_.end() && next->first < end; ++next) {
        const std::uint64_t from = std::max(start, next->first);
        const std::uint64_t to = std::min(end, next->second);
        if (from < to) count -= to - from;
    }
    return count;
}

std::uint64_t RangeSet::length_before(std::uint64_t end) const noexcept {
    const auto next = ends_.lower_bound(end);
    if (next == ends_.begin()) return 0;
    const auto before = std::prev(next);
    return before->second == end ? end - before->first : 0;
}

} // namespace kumi::base
