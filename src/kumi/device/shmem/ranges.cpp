#include "kumi/device/shmem/ranges.hpp"

#include <algorithm>
#include <iterator>

namespace kumi::device::shmem {

void Ranges::add(std::uint64_t first, std::uint64_t end) {
    if (first >= end) return;
    auto next = ends_.upper_bound(first);
    if (next != ends_.begin() && std::prev(next)->second >= first) --next;
    while (next != ends_.end() && next->first <= end) { // these become one
        first = std::min(first, next->first);
        end = std::max(end, next->second);
        next = ends_.erase(next);
    }
    ends_.emplace(first, end);
}

void Ranges::remove(std::uint64_t first, std::uint64_t end) {
    if (first >= end) return;
    add(first, end); // then one range has them all
    const auto around = std::prev(ends_.upper_bound(first));
    const auto [before, behind] = *around;
    ends_.erase(around);
    if (before < first) ends_.emplace(before, first);
    if (end < behind) ends_.emplace(end, behind);
}

std::uint64_t Ranges::missing(std::uint64_t first, std::uint64_t end) const {
    if (first >= end) return 0;
    std::uint64_t count = end - first;
    auto next = ends_.upper_bound(first);
    if (next != ends_.begin()) --next;
    for (; next != ends_.end() && next->first < end; ++next) {
        const std::uint64_t from = std::max(first, next->first);
        const std::uint64_t to = std::min(end, next->second);
        if (from < to) count -= to - from;
    }
    return count;
}

} // namespace kumi::device::shmem
