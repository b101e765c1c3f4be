#pragma once

// What Kumi and MPIs share in `kumi bench group`: equal sets in the same order, equal contents. Node 0 is the master
// and a member.

#include "contestant/measure.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace kumi::bench {

inline constexpr std::size_t multicast_bytes[] = {64, 8192, 81920, 1048576};
inline constexpr std::size_t create_bytes[] = {64};
inline constexpr std::size_t allreduce_bytes[] = {8, 1048576};
inline constexpr std::size_t alltoallv_bytes[] = {8192, 4194304}; // from each node, in all
inline constexpr int sets_in_turn = 8;

/// The number of nodes in each set.
constexpr int set_nodes(int nodes) { return std::max(2, 3 * nodes / 4); }

/// Random sets; all nodes choose the same ones. The members of a set are in ascending order.
inline std::vector<std::vector<int>> random_sets(int nodes) {
    std::mt19937_64 random(static_cast<std::uint64_t>(nodes));
    std::vector<int> others(static_cast<std::size_t>(nodes - 1));
    std::iota(others.begin(), others.end(), 1);
    std::vector<std::vector<int>> sets;
    for (int i = 0; i < sets_in_turn; ++i) {
        std::shuffle(others.begin(), others.end(), random);
        std::vector<int>& set = sets.emplace_back(1, 0);
        set.insert(set.end(), others.begin(), others.begin() + set_nodes(nodes) - 1);
        std::sort(set.begin(), set.end());
    }
    return sets;
}

/// Writes a number at both ends of a content, so that members can check that the content is complete.
inline void stamp(std::span<std::byte> content, std::uint64_t number) {
    std::memcpy(content.data(), &number, sizeof number);
    std::memcpy(content.data() + content.size() - sizeof number, &number, sizeof number);
}

/// The number; 0: the two ends differ.
inline std::uint64_t stamp_of(std::span<const std::byte> content) {
    std::uint64_t first = 0, last = 0;
    if (content.size() < sizeof first) return 0;
    std::memcpy(&first, content.data(), sizeof first);
    std::memcpy(&last, content.data() + content.size() - sizeof last, sizeof last);
    return first == last ? first : 0;
}

/// Seconds of a sum over all nodes, at this node. `sum_up(mine, sums)` computes one. Empty: a sum was wrong.
template <class SumUp, class Agreed>
std::optional<double> allreduce_seconds(std::size_t bytes, int nodes, SumUp&& sum_up, Agreed&& agreed) {
    std::vector<double> mine(bytes / sizeof(double)), sums(mine.size());
    double number = 0; // of the sum; stands at both ends of the values
    bool is_right = true;
    const auto once = [&] {
        mine.front() = mine.back() = ++number;
        sum_up(mine, sums);
        is_right = is_right && sums.front() == nodes * number && sums.back() == nodes * number;
    };
    const double seconds = settled_seconds(
        1, [&](std::int64_t count) { return seconds_each(count, once); }, agreed);
    return is_right ? std::optional(seconds) : std::nullopt;
}

/// What one node sends to each, of unequal sizes, as in a sample sort: the parts for higher ranks are larger.
inline std::vector<int> alltoallv_counts(std::size_t bytes, int nodes) {
    std::vector<int> counts;
    const auto words = static_cast<int>(bytes / sizeof(std::uint64_t));
    for (int rank = 0; rank < nodes; ++rank) counts.push_back(words * (nodes + 2 * rank + 1) / (2 * nodes * nodes));
    return counts;
}

/// Seconds of an exchange among all nodes, at this node. `exchange(send, receive)` makes one: part r of `send` has
/// counts[r] words and goes to rank r, and all parts that come here have the size of part `rank`. Empty: something
/// arrived at a wrong place.
template <class Exchange, class Agreed>
std::optional<double> exchange_seconds(const std::vector<int>& counts, int rank, Exchange&& exchange, Agreed&& agreed) {
    const auto nodes = static_cast<int>(counts.size());
    const auto part = static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]);
    std::vector<std::uint64_t> send, receive(part * static_cast<std::size_t>(nodes));
    for (int to = 0; to < nodes; ++to)
        send.insert(send.end(), static_cast<std::size_t>(counts[static_cast<std::size_t>(to)]),
                    static_cast<std::uint64_t>(rank * nodes + to));
    bool is_right = true;
    const auto once = [&] {
        receive.front() = receive.back() = ~std::uint64_t{0};
        exchange(send, receive);
        is_right = is_right && receive.front() == static_cast<std::uint64_t>(rank) &&
                   receive.back() == static_cast<std::uint64_t>((nodes - 1) * nodes + rank);
    };
    const double seconds = settled_seconds(
        1, [&](std::int64_t count) { return seconds_each(count, once); }, agreed);
    return is_right ? std::optional(seconds) : std::nullopt;
}

} // namespace kumi::bench
