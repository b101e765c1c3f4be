#include "kumi/group/plan/choice.hpp"

#include "kumi/base/system/machine.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

// The formulas are those of LogP, corrected by simulations of 8 to 256 members. From 1 KB to 8 MB they are within an
// eighth of the simulated time of the fastest way.
//
// Whole messages. A member must have all of a message before it passes it on: the message is copied out, carried and
// copied in.
//
// Blocks over a circulant graph. Blocks arrive at a member and leave it one after the other, and the last block needs
// log2 p hops more. Small blocks are copied like messages; a member handles each of them twice, so a hop waits for
// another one. Large blocks are not copied: the network moves them from one memory to the other, and about four of them
// share the path, because a member sends the next block without waiting for the one before.
//
// Scatter. Half of the bytes, a quarter, ... in log2 p hops; then the other parts come in rounds. All of these are
// whole messages.

namespace kumi::group {
namespace {

constexpr std::uint32_t block_bytes_min = 1024;
constexpr std::uint32_t block_bytes_max = 64 * 1024;
constexpr std::uint32_t copied_bytes_max = 8 * 1024; // what networks send at once, more or less
constexpr double copies = 2.5;                       // with the network's; copying in takes half of copying out
constexpr double blocks_sharing = 4;

/// One multicast, for all ways of it.
class Estimate {
public:
    Estimate(std::size_t bytes, std::uint32_t members, const Costs& costs)
        : bytes_(bytes), members_(members), costs_(costs),
          log2_(std::max(1, static_cast<int>(std::bit_width(members > 0 ? members - 1 : 0)))),
          bytes_us_(static_cast<double>(bytes) * costs.us_per_byte) {}

    Choice of(Way way) const {
        switch (way) {
        case Way::tree: return tree();
        case Way::binomial:
            return {.way = way, .pace = {1, 1}, .block_bytes = 0, .expected_us = time_of(members_, {1, 1}) * hop_us()};
        case Way::circulant: return circulant();
        case Way::scatter_ring: return scatter(way, members_ - 1);
        case Way::scatter_doubling: return scatter(way, log2_);
        }
        return {};
    }

private:
    Choice tree() const {
        const Pace pace{.gap = costs_.overhead_us + bytes_us_, .hop = hop_us()};
        return {.way = Way::tree, .pace = pace, .block_bytes = 0, .expected_us = time_of(members_, pace)};
    }
    /// Of the whole message. Between two members it is not passed on.
    double hop_us() const { return costs_.latency_us + (members_ < 3 ? 1 : copies) * bytes_us_; }

    Choice in_blocks(Way way, std::size_t block_bytes, double expected_us) const {
        // Answers have no bytes.
        return {.way = way,
                .pace = {.gap = costs_.overhead_us, .hop = costs_.latency_us},
                .block_bytes = static_cast<std::uint32_t>(block_bytes),
                .expected_us = expected_us};
    }

    Choice circulant() const {
        Choice best = in_blocks(Way::circulant, block_bytes_min, circulant_us(block_bytes_min));
        for (std::uint32_t block_bytes = 2 * block_bytes_min; block_bytes <= block_bytes_max; block_bytes *= 2)
            if (const double us = circulant_us(block_bytes); us < best.expected_us)
                best = in_blocks(Way::circulant, block_bytes, us);
        return best;
    }
    double circulant_us(std::uint32_t block_bytes) const {
        const auto more = static_cast<double>(bytes_ == 0 ? 0 : (bytes_ - 1) / block_bytes);
        const double block_us = static_cast<double>(std::min<std::size_t>(bytes_, block_bytes)) * costs_.us_per_byte;
        if (block_bytes > copied_bytes_max)
            return log2_ * (costs_.latency_us + blocks_sharing * block_us) + more * (costs_.overhead_us + block_us);
        return log2_ * (costs_.latency_us + costs_.overhead_us + copies * block_us) +
               more * (2 * costs_.overhead_us + (copies - 1) * block_us);
    }

    /// A block for each member, as far as they are neither small nor large.
    Choice scatter(Way way, double rounds) const {
        constexpr std::size_t unit = 64;
        const std::size_t part = (bytes_ / std::max(1u, members_) / unit + 1) * unit;
        const double moved_us = bytes_us_ * (1 - 1 / static_cast<double>(std::max(1u, members_)));
        return in_blocks(way, std::clamp<std::size_t>(part, block_bytes_min, block_bytes_max),
                         (log2_ + rounds) * costs_.latency_us + 4 * moved_us);
    }

    std::size_t bytes_;
    std::uint32_t members_;
    const Costs& costs_;
    double log2_; // of members, rounded up; one hop at least
    double bytes_us_;
};

} // namespace

Choice choose(std::size_t bytes, std::uint32_t members, const Costs& costs, std::optional<Way> way) {
    const Estimate estimate(bytes, members, costs);
    if (way) return estimate.of(*way);
    Choice best = estimate.of(Way::tree);
    // One block is a whole message. Between two members nothing is passed on.
    if (members < 3 || bytes <= block_bytes_min) return best;
    for (const Way other : {Way::binomial, Way::circulant, Way::scatter_ring, Way::scatter_doubling})
        if (Choice choice = estimate.of(other); choice.expected_us < best.expected_us) best = choice;
    return best;
}

std::string text_of(const Choice& choice) {
    if (!goes_in_blocks(choice.way)) return std::string(name_of(choice.way));
    return fmt::format("{}, blocks of {}", name_of(choice.way), base::readable_bytes(choice.block_bytes));
}

} // namespace kumi::group
