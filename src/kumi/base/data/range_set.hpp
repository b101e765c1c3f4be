#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace kumi::base {

/// A set of numbers (addresses, offsets), kept as the fewest ranges that have them all: which parts of a memory are
/// free, or which have been exposed.
class RangeSet {
public:
    /// Adds `count` numbers from `start` on. The set may have some of them already. Ranges that touch become one.
    void add(std::uint64_t start, std::uint64_t count);
    /// Removes `count` numbers from `start` on, as far as the set has them.
    void remove(std::uint64_t start, std::uint64_t count);
    /// Removes the lowest `count` numbers in a row, and returns the first of them: equal calls give equal answers on
    /// all nodes. Nothing when no range is long enough.
    std::optional<std::uint64_t> take(std::uint64_t count);

    /// How many of the `count` numbers from `start` on the set does not have.
    std::uint64_t missing(std::uint64_t start, std::uint64_t count) const;
    /// The length of the range that ends before `end`, and so would grow by an add() there; 0 if there is none.
    std::uint64_t length_before(std::uint64_t end) const noexcept;

private:
    std::map<std::uint64_t, std::uint64_t> ends_; // by start: one behind the last. No range touches another.
};

} // namespace kumi::base
