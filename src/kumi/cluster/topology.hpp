#pragma once

// Who may talk to whom directly on a network. Most let everybody; but cables may join neighbours only, or one wants to
// see what a program does on such a machine. The members of a network have places on it, from 0 in the file's order.

#include "kumi/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kumi::cluster {

class Topology {
public:
    enum class Kind : std::uint8_t { all, chain, ring, tree, torus };

    Topology() = default;
    /// "all", "chain", "ring", "tree" (binary), "torus 4x2".
    static Result<Topology> parse(std::string_view text);

    Kind kind() const noexcept { return kind_; }
    std::string text() const;
    /// Whether so many members can be joined like that; a torus must be full.
    Result<void> check(std::uint32_t members) const;
    /// Whether the members at these places, of so many, are neighbours.
    bool joins(std::uint32_t one, std::uint32_t other, std::uint32_t members) const noexcept;

private:
    Kind kind_ = Kind::all;
    std::uint32_t columns_ = 0; // of a torus
    std::uint32_t rows_ = 0;
};

} // namespace kumi::cluster
