#pragma once

// Counters of channels.

#include <cstdint>
#include <string_view>

namespace kumi::pm {

/// How often something has happened since a channel was opened, for people to read. Counters of one name can be added
/// up over peers and nodes.
struct Counter {
    std::string_view name; // one word as in packets_resent, at most 31 characters; lives as long as the program
    std::uint64_t value;
};

} // namespace kumi::pm
