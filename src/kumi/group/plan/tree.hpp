#pragma once

// Trees over ranks 0 to p-1 in which every subtree is a range of ranks: rank a is the root of the ranks from a to
// before b and gives ranges of the others to its children. So the receiver of a message needs to know its own range
// only.

#include "kumi/pm/node.hpp"

#include <cstdint>
#include <vector>

namespace kumi::group {

using pm::Node;

/// A subtree: the ranks from `begin` to before `end`; `begin` is its root.
struct RankRange {
    Node begin;
    Node end;
    friend bool operator==(const RankRange&, const RankRange&) = default;
};

/// The time that sending takes: `gap` until the sender can send the next message, `hop` until a message has arrived.
/// Only their ratio counts. gap = hop gives the binomial tree; a gap much smaller than the hop gives a flat tree.
struct Pace {
    double gap = 1;
    double hop = 1;
    friend bool operator==(const Pace&, const Pace&) = default;
};

/// The tree that reaches all ranks soonest (after Karp and others, 1993): each rank that has the message keeps sending
/// it. Returns the children of the root of `whole` in the order of sending; together they are `whole` without its root.
std::vector<RankRange> children_of(RankRange whole, const Pace& pace);
/// The time at which the last of so many members has the message, in the unit of `pace`.
double time_of(Node members, const Pace& pace);

} // namespace kumi::group
