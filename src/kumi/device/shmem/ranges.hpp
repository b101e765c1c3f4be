#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace kumi::device::shmem {

/// A set of numbers, kept as ranges from a first to one behind the last.
class Ranges {
public:
    void add(std::uint64_t first, std::uint64_t end);
    void remove(std::uint64_t first, std::uint64_t end);
    /// How many of these it does not have.
    std::uint64_t missing(std::uint64_t first, std::uint64_t end) const;

private:
    std::map<std::uint64_t, std::uint64_t> ends_; // by the first; ranges do not touch
};

} // namespace kumi::device::shmem
