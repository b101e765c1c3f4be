#pragma once

// The ways in which a multicast can travel.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kumi::group {

enum class Way : std::uint32_t {
    tree,             // whole messages down the tree that reaches all members soonest
    binomial,         // whole messages down a binomial tree
    circulant,        // blocks over a circulant graph
    scatter_ring,     // a part for each member down a binomial tree, then all parts around a ring
    scatter_doubling, // the same scatter, then the parts that each member has double in each round
};

inline constexpr std::array<std::string_view, 5> way_names{"tree", "binomial", "circulant", "scatter_ring",
                                                           "scatter_doubling"};

inline std::string_view name_of(Way way) noexcept { return way_names[static_cast<std::size_t>(way)]; }

inline std::optional<Way> way_named(std::string_view name) noexcept {
    for (std::size_t i = 0; i < way_names.size(); ++i)
        if (way_names[i] == name) return static_cast<Way>(i);
    return {};
}

inline bool goes_in_blocks(Way way) noexcept { return way != Way::tree && way != Way::binomial; }

} // namespace kumi::group
