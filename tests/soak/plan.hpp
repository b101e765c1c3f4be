#pragma once

// What happens in one round of the soak, as the seed says: all nodes compute the same plan.
//
// A round is a sequence of epochs. In an epoch, nodes make the same shared calls in the same order, and calls of their
// own between them. An epoch ends with a barrier of those nodes that are to be there still, and with a check of totals.
// So the plan says which failures are explained: those of calls that need a node whose fate has come.

#include <kumi/group/set.hpp>
#include <kumi/pm/node.hpp>

#include <cstdint>
#include <vector>

namespace kumi::soak {

using group::Set;
using pm::Node;

/// Numbers that depend on the seed alone, on every machine.
class Random {
public:
    explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept; // splitmix64
    /// From 0 to before `end`.
    std::uint64_t below(std::uint64_t end) noexcept { return next() % end; }
    std::uint64_t between(std::uint64_t first, std::uint64_t last) noexcept { return first + below(last - first + 1); }
    /// True once in so many times.
    bool once_in(std::uint64_t times) noexcept { return below(times) == 0; }
    /// Mostly small numbers, sometimes numbers up to `most`.
    std::size_t size(std::size_t most) noexcept;

private:
    std::uint64_t state_;
};

/// A number that depends on all of these.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0, std::uint64_t d = 0) noexcept;

struct Fate {
    enum Kind { stays, leaves, dies, stops };
    Kind kind = stays;
    unsigned epoch = 0;    // in which it comes
    unsigned after_ms = 0; // from the start of that epoch on; for `leaves`: the shared step
};

enum class Trouble { none, stops, losses };

struct Plan {
    Plan(std::uint64_t seed, Node nodes, unsigned epochs, unsigned steps, Trouble trouble);

    /// Whether `node` is lost in that epoch, or was before.
    bool is_lost(Node node, unsigned epoch) const noexcept;
    Set survivors(unsigned epoch) const;
    /// Whether a process watches each node: it continues nodes that stop, and stays where they die.
    bool has_watchers() const noexcept;

    std::uint64_t seed;
    Node nodes;
    unsigned epochs;
    unsigned steps;   // shared calls in an epoch
    unsigned threads; // of each node
    unsigned stop_ms; // how long a node stops
    std::vector<Fate> fates;
};

} // namespace kumi::soak
