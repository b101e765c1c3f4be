#pragma once

// Trees over ranks 0 to p-1 whose parts are runs of ranks: who has the ranks from a to before b is rank a, and gives
// runs of the rest to others. So whoever gets a message needs to know its own part only.

#include "kumi/pm/node.hpp"

#include <cstdint>
#include <vector>

namespace kumi::group {

using pm::Node;

/// A part of a tree: ranks from `begin` to before `end`; `begin` is its root.
struct RankRange {
    Node begin;
    Node end;
    friend bool operator==(const RankRange&, const RankRange&) = default;
};

/// What sending takes: `gap` until a sender can send the next message, `hop` until one is there. Only their ratio
/// counts. gap = hop gives the binomial tree, gap much smaller than hop a flat one.
struct Pace {
    double gap = 1;
    double hop = 1;
    friend bool operator==(const Pace&, const Pace&) = default;
};

/// The tree that reaches all soonest (after Karp and others, 1993): each who has the message goes on sending it.
/// Answers whom the root of `whole` sends to, the parts of it in the order of sending, which together are whole but for
/// its root.
std::vector<RankRange> children_of(RankRange whole, const Pace& pace);
/// When the last of so many has it, in the unit of `pace`.
double time_of(Node members, const Pace& pace);

} // namespace kumi::group
