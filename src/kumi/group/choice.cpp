#include "kumi/group/choice.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kumi::group {
namespace {

constexpr std::uint32_t block_bytes_min = 1024;
constexpr std::uint32_t block_bytes_max = 64 * 1024;

/// Every round takes as long as a block does, and there are log2 p - 1 more rounds than blocks.
double circulant_us(std::size_t bytes, std::uint32_t members, std::uint32_t block_bytes, const Costs& costs) {
    const double blocks = static_cast<double>(bytes / block_bytes + (bytes % block_bytes != 0 ? 1 : 0));
    const double rounds = blocks - 1 + static_cast<double>(std::bit_width(members - 1));
    const double largest = static_cast<double>(std::min<std::size_t>(bytes, block_bytes));
    return rounds * (costs.latency_us + largest * costs.us_per_byte);
}

} // namespace

Choice choose(std::size_t bytes, std::uint32_t members, const Costs& costs) {
    const double bytes_us = static_cast<double>(bytes) * costs.us_per_byte;
    Choice choice;
    choice.pace = {.gap = costs.overhead_us + bytes_us, .hop = costs.latency_us + bytes_us};
    choice.expected_us = time_of(members, choice.pace);
    // One block is a whole message; among two there is nobody to pass it on.
    if (members < 3 || bytes <= block_bytes_min) return choice;

    for (std::uint32_t block_bytes = block_bytes_min; block_bytes <= block_bytes_max; block_bytes *= 2) {
        const double us = circulant_us(bytes, members, block_bytes, costs);
        if (us >= choice.expected_us) continue;
        choice = {.way = Way::circulant,
                  .pace = {.gap = costs.overhead_us, .hop = costs.latency_us}, // of answers, which have no bytes
                  .block_bytes = block_bytes,
                  .expected_us = us};
    }
    return choice;
}

std::string text_of(const Choice& choice) {
    if (choice.way == Way::tree) return "tree";
    return fmt::format("circulant, blocks of {} KiB", choice.block_bytes / 1024);
}

} // namespace kumi::group
