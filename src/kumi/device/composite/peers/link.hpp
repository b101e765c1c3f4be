#pragma once

#include "kumi/base/clock.hpp"
#include "kumi/device/composite/letters/envelope.hpp"
#include "kumi/pm/channel.hpp"

#include <cstdint>
#include <limits>
#include <string>

namespace kumi::device::composite {

/// A network that joins this node with others: a channel that knows its ways.
struct Link {
    pm::Channel* channel;
    pm::Ways* ways;
    std::uint32_t network; // its number, the same on all nodes
    std::string name;      // for people

    // Kept by Networks.
    std::uint32_t index = 0; // among the links of this node
    bool up = true;
    Instant told{}; // when the user was last told that ways over it have failed
};

/// A way to a peer, as it is planned.
struct PlannedWay {
    std::uint32_t link = 0;
    Node number = 0;         // of the peer, on that link
    bool is_relayed = false; // other nodes pass messages on: no link, no number. At most one way, the last
    Path path{};             // these nodes; empty: to be found when it is needed
    bool is_silent = false;  // it has not answered yet: it is tried, and used when it does
};

struct StripeOptions {
    std::size_t message_bytes_min = std::size_t{32} << 10; // that is sent in pieces; the engine's large puts are longer
    std::size_t piece_bytes_max = std::size_t{120} << 10;  // fits a block of 128 KiB with its packets' headers
    // ahead of a message in pieces that has not arrived; or two of them
    std::size_t ahead_bytes_max = std::size_t{8} << 20;
    bool always = false; // not only where it pays

    static StripeOptions none() noexcept { return {.message_bytes_min = std::numeric_limits<std::size_t>::max()}; }
};

/// Counted since the channel was opened.
struct NetworkCounters {
    std::uint64_t failovers = 0;
    std::uint64_t returns = 0;       // to a better way
    std::uint64_t resent = 0;        // messages and pieces, because a way failed
    std::uint64_t duplicates = 0;    // messages that came by two ways
    std::uint64_t early = 0;         // messages that came before their turn
    std::uint64_t passed_on = 0;     // letters of other nodes
    std::uint64_t not_passed_on = 0; // because there was no way on
    std::uint64_t seeks = 0;         // for paths, this node's own
    std::uint64_t striped = 0;       // messages, sent in pieces
    std::uint64_t unsound = 0;       // envelopes that make no sense, and pieces that fit nowhere
};

} // namespace kumi::device::composite
