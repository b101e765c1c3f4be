#pragma once

// Which hosts may send to each other directly on a network. On most networks all may. But cables may connect neighbours
// only, or a user wants to see how a program behaves on such a machine. The members of a network have positions on it,
// from 0 in the order of the file.

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kumi::cluster {

class Topology {
public:
    enum class Kind : std::uint8_t { all, chain, ring, tree, torus };

    Topology() = default;
    /// Parses "all", "chain", "ring", "tree" (binary) or "torus 4x2".
    static Result<Topology> parse(std::string_view text);

    Kind kind() const noexcept { return kind_; }
    std::string text() const;
    /// An error if so many members cannot have this topology; a torus must be full.
    Result<void> check(std::uint32_t members) const;
    /// True if the members at these two positions, of so many in all, are neighbours.
    bool joins(std::uint32_t one, std::uint32_t other, std::uint32_t members) const noexcept;

private:
    Kind kind_ = Kind::all;
    std::uint32_t columns_ = 0; // of a torus
    std::uint32_t rows_ = 0;
};

} // namespace kumi::cluster
