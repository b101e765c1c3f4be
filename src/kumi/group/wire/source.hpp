#pragma once

// The messages by which a node asks another one, the source, to multicast what is in its memory: a service of the
// engine with two kinds. All fields are little-endian. The receiver checks every field before it uses it.

#include "kumi/engine/wire.hpp"

#include <cstdint>

namespace kumi::group {

inline constexpr std::uint16_t source_ask_kind = 0;
inline constexpr std::uint16_t source_ended_kind = 1;

/// To the source. A StoreHead, `places` StorePlaces and the set of members follow.
struct SourceAsk {
    std::uint64_t number; // of the node that asks
    engine::Place from;
    std::uint64_t bytes;
    std::uint32_t places;
    std::uint32_t reserved;
};
static_assert(sizeof(SourceAsk) == 40);

/// From the source: how the multicast ended. The set of members that did not get it follows, and a text if it failed.
struct SourceEnded {
    std::uint64_t number;
    std::uint32_t has_failed;
    std::uint32_t code; // an ErrorCode, unchecked
};
static_assert(sizeof(SourceEnded) == 16);

} // namespace kumi::group
