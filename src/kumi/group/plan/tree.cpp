#include "kumi/group/plan/tree.hpp"

#include "kumi/base/assert.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

// A node is reached by a chain of sends, each of which waited for the earlier sends of its sender. After a chain of d
// sends that waited for w other sends in all, the node has the message at time d * hop + w * gap. There are C(w + d -
// 1, d - 1) such nodes, and so C(w + d, d) nodes whose chains waited for w sends at most. The sum over d is the number
// of nodes that are reached within a time, so no table of times is needed.
//
// Times are counted in whole ticks, so that all nodes find the same tree, and times that should be equal are equal.

namespace kumi::group {
namespace {

using Ticks = std::uint64_t;

constexpr unsigned gap_bits = 28;
constexpr Ticks gap = Ticks{1} << gap_bits;

double positive(double value) noexcept { return std::isfinite(value) && value > 0 ? value : 1; }

Pace sound(const Pace& pace) noexcept {
    const double hop = positive(pace.hop);
    return {.gap = std::min(positive(pace.gap), hop), .hop = hop};
}

Ticks hop_of(const Pace& pace) noexcept {
    // With more gaps in a hop than there are nodes, the tree is flat anyway.
    const double ratio = std::min(pace.hop / pace.gap, 0x1p32);
    return static_cast<Ticks>(std::llround(ratio * static_cast<double>(gap)));
}

/// The number of nodes that have the message `time` after the first one has it, the first included; at most `limit`.
std::uint64_t reached(Ticks time, Ticks hop, std::uint64_t limit) noexcept {
    std::uint64_t count = 1;
    for (std::uint64_t depth = 1; count < limit && time >= hop; ++depth) {
        time -= hop;
        const std::uint64_t waits = std::min(time >> gap_bits, limit);
        std::uint64_t nodes = 1;
        for (std::uint64_t i = 1; i <= depth && nodes < limit; ++i) nodes = nodes * (waits + i) / i;
        count += nodes;
    }
    return std::min(count, limit);
}

/// A time at which a message arrives.
struct LastArrival {
    std::uint64_t depth;
    std::uint64_t waits;
    Ticks ticks(Ticks hop) const noexcept { return depth * hop + waits * gap; }
};

/// The first time at which `members` nodes have the message. There must be two at least.
LastArrival soonest(Node members, Ticks hop) noexcept {
    LastArrival best{.depth = 1, .waits = members - 2}; // the flat tree
    Ticks too_soon = 0;
    for (LastArrival next{.depth = 1, .waits = 0}; next.depth * hop < best.ticks(hop); ++next.depth) {
        std::uint64_t low = 0;
        std::uint64_t high = (best.ticks(hop) - next.depth * hop - 1) / gap;
        const auto enough = [&](std::uint64_t waits) {
            next.waits = waits;
            const Ticks time = next.ticks(hop);
            if (time <= too_soon) return false;
            if (reached(time, hop, members) == members) return true;
            too_soon = time;
            return false;
        };
        if (!enough(high)) continue;
        while (low < high) {
            const std::uint64_t middle = low + (high - low) / 2;
            if (enough(middle)) high = middle;
            else low = middle + 1;
        }
        best = {next.depth, low};
    }
    return best;
}

} // namespace

std::vector<RankRange> children_of(RankRange whole, const Pace& pace) {
    KUMI_ASSERT(whole.begin <= whole.end);
    std::vector<RankRange> children;
    Node members = whole.end - whole.begin;
    if (members < 2) return children;
    const Ticks hop = hop_of(sound(pace));
    children.reserve(static_cast<std::size_t>(std::bit_width(members)));
    for (Ticks left = soonest(members, hop).ticks(hop); members > 1; left -= gap) {
        KUMI_ASSERT(left >= hop);
        const auto given = static_cast<Node>(reached(left - hop, hop, members - 1));
        members -= given;
        children.push_back({whole.begin + members, whole.begin + members + given});
    }
    return children;
}

double time_of(Node members, const Pace& pace) {
    if (members < 2) return 0;
    const Pace known = sound(pace);
    if (members == 2) return known.hop; // needs no search
    const LastArrival last = soonest(members, hop_of(known));
    return static_cast<double>(last.depth) * known.hop + static_cast<double>(last.waits) * known.gap;
}

} // namespace kumi::group
