#pragma once

// What the programs of this folder share: how items are divided among nodes, random numbers that every node computes
// alike, and the comparison with the result of a serial program.

#include "kumi/kumi.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

/// Consecutive items, from `first` to before `end`.
struct Part {
    std::size_t first, end;

    std::size_t size() const { return end - first; }
};

/// Divides `count` items into `parts` parts whose sizes differ by one at most.
inline Part part_of(std::size_t count, std::size_t part, std::size_t parts) {
    return {count * part / parts, count * (part + 1) / parts};
}

/// A random number that depends on `index` alone (SplitMix64).
inline std::uint64_t random_at(std::uint64_t index) {
    std::uint64_t bits = (index + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

/// The number in a word of the command line, or `usual` if there is no such word.
inline std::size_t number_in(int count, char** words, int index, std::size_t usual) {
    return index < count ? std::strtoul(words[index], nullptr, 10) : usual;
}

/// The parts that gatherv() brings, as one array.
template <class T>
std::vector<T> joined(const std::vector<std::vector<T>>& parts) {
    std::vector<T> all;
    for (const std::vector<T>& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

/// An error names the first value that differs from the serial program's by more than `tolerance`. With a tolerance of
/// 0 the bits must be equal.
template <class T>
kumi::Result<void> check_equal(const std::vector<T>& found, const std::vector<T>& serial, double tolerance = 0) {
    if (found.size() != serial.size())
        return kumi::error("{} values, but the serial program has {}", found.size(), serial.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        const bool is_close = std::abs(static_cast<double>(found[i]) - static_cast<double>(serial[i])) <= tolerance;
        const bool is_same = std::bit_cast<std::uint64_t>(found[i]) == std::bit_cast<std::uint64_t>(serial[i]);
        if (!is_same && !(tolerance > 0 && is_close))
            return kumi::error("value {} of {} is {}, but the serial program has {}", i, found.size(), found[i],
                               serial[i]);
    }
    return {};
}
