#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace kumi::engine {

/// Which parts of a range of addresses are free. Takes the lowest that fits, so equal calls give equal answers
/// everywhere.
class FreeRanges {
public:
    /// Adds a free range; joins it with its neighbours.
    void add(std::uint64_t start, std::uint64_t bytes);
    std::optional<std::uint64_t> take(std::uint64_t bytes);
    /// What ends at `end`, and so would grow by what is added there.
    std::uint64_t free_before(std::uint64_t end) const noexcept;

private:
    std::map<std::uint64_t, std::uint64_t> ranges_; // by start; none touches another
};

} // namespace kumi::engine
