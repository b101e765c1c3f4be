#pragma once

// What Kumi and MPIs share in `kumi bench patterns`: sizes, the nodes that send to each other, and how rows are
// measured.

#include "contestant/measure.hpp"
#include "contestant/work.hpp"
#include "group/work.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kumi::bench {

inline constexpr std::size_t pairs_bytes[] = {8192, 65536};
inline constexpr std::size_t pingpongs_bytes[] = {10}; // as in the paper about objects on an NT cluster
inline constexpr std::size_t incast_bytes[] = {64, 1024, 8192, 65536};
inline constexpr std::size_t placement_bytes[] = {8, 65536}; // from each node to each
inline constexpr std::size_t multicasts_bytes[] = {64, 8192};
inline constexpr std::int64_t messages_first = 64; // the first run, which finds out how long a message takes

inline constexpr int nobody = -1;

/// The messages of one node in "pairs" and "incast".
struct Flow {
    int to = nobody;
    std::vector<int> from = {};
};

/// In "pairs" each even node sends to the next one. In "incast" all others send to node 0.
inline Flow flow_of(const std::string& what, int node, int nodes) {
    if (what == "pairs") return node % 2 == 0 ? Flow{node + 1} : Flow{nobody, {node - 1}};
    if (node != 0) return {0};
    Flow all;
    for (int sender = 1; sender < nodes; ++sender) all.from.push_back(sender);
    return all;
}

inline std::span<const std::size_t> rates_bytes(const std::string& what) {
    if (what == "pairs") return pairs_bytes;
    if (what == "pingpongs") return pingpongs_bytes;
    return incast_bytes;
}

/// How many nodes send at once. Of a pair only one does at a time.
inline int senders_of(const std::string& what, int nodes) { return what == "incast" ? nodes - 1 : nodes / 2; }

inline constexpr int multicasts_nodes = 8;

/// The members of a multicast: its master first, and as many after it that the sets of all masters overlap.
inline std::vector<int> members_of(int master, int nodes) {
    std::vector<int> members;
    for (int i = 0; i < set_nodes(nodes); ++i) members.push_back((master + i) % nodes);
    return members;
}

inline std::string pattern_row(const std::string& what, std::size_t bytes, const std::string& place) {
    return "patterns." + what + "." + std::to_string(bytes) + "." + place;
}

inline void report_pattern(const std::string& what, std::size_t bytes, const std::string& place, double value) {
    report(pattern_row(what, bytes, place).c_str(), value);
}

/// Measures the bandwidth of all senders together, for each size: in MB/s, but in kB/s for "pingpongs".
/// `seconds_of(bytes, count)` lets each sender send `count` messages, from a barrier to a barrier, and answers the
/// seconds of one.
template <class SecondsOf, class Agreed>
void measure_rates(const std::string& what, const std::string& place, int node, int nodes, SecondsOf&& seconds_of,
                   Agreed&& agreed) {
    for (const std::size_t bytes : rates_bytes(what)) {
        const double seconds = settled_seconds(
            messages_first, [&](std::int64_t count) { return seconds_of(bytes, count); }, agreed);
        const double all = senders_of(what, nodes) * static_cast<double>(bytes);
        if (node == 0) report_pattern(what, bytes, place, all * (what == "pingpongs" ? 1e-3 : 1e-6) / seconds);
    }
}

} // namespace kumi::bench
