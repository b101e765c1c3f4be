#pragma once

// Which way a multicast goes, by its size and how many it goes to: as formulas tell from what the network was measured
// to do.

#include "kumi/group/plan/tree.hpp"
#include "kumi/group/plan/way.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kumi::group {

/// Where costs are from.
enum class Origin : std::uint8_t {
    usual,    // what the class of networks takes
    measured, // in this job
    given,
};

/// What a message takes between two members.
struct Costs {
    double overhead_us = 0.2; // of a sender, for each message
    double latency_us = 1.2;  // until a message without bytes is there, overhead and all
    double us_per_byte = 0.0001;
    Origin origin = Origin::given;
};

struct Choice {
    Way way = Way::tree;
    Pace pace;                     // of the tree; or of that by which answers come back
    std::uint32_t block_bytes = 0; // where it goes in blocks
    double expected_us = 0;
    friend bool operator==(const Choice&, const Choice&) = default;
};

/// The way that takes least, or that one. `members` has the one who sends.
Choice choose(std::size_t bytes, std::uint32_t members, const Costs& costs, std::optional<Way> way = {});

/// "tree", "circulant, blocks of 4 KiB"
std::string text_of(const Choice& choice);

} // namespace kumi::group
