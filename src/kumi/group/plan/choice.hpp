#pragma once

// Chooses the way of a multicast from its size and the number of members, by formulas over the measured costs of
// messages.

#include "kumi/group/plan/tree.hpp"
#include "kumi/group/plan/way.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kumi::group {

/// Where costs come from.
enum class Origin : std::uint8_t {
    usual,    // typical of the class of networks
    measured, // in this job
    given,    // by the user
};

/// What a message between two members costs.
struct Costs {
    double overhead_us = 0.2; // of the sender, for each message
    double latency_us = 1.2;  // until a message without bytes has arrived, overhead included
    double us_per_byte = 0.0001;
    Origin origin = Origin::given;
};

struct Choice {
    Way way = Way::tree;
    Pace pace;                     // of the tree; with blocks, of the tree by which answers return
    std::uint32_t block_bytes = 0; // with blocks
    double expected_us = 0;
    friend bool operator==(const Choice&, const Choice&) = default;
};

/// The fastest way, or `way` if it is given. `members` counts the sender too.
Choice choose(std::size_t bytes, std::uint32_t members, const Costs& costs, std::optional<Way> way = {});

/// "tree", "circulant, blocks of 4 KiB"
std::string text_of(const Choice& choice);

} // namespace kumi::group
