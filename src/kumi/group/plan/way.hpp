#pragma once

// The ways that a multicast can go.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kumi::group {

enum class Way : std::uint32_t {
    tree,             // whole messages down the tree that reaches all soonest
    binomial,         // whole messages down a binomial tree
    circulant,        // in blocks, over a circulant graph
    scatter_ring,     // a part to each down a binomial tree, then the parts go round
    scatter_doubling, // the same, and then what each has doubles in each round
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
