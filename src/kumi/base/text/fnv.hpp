#pragma once

// A hash of texts that is the same on all nodes.

#include <cstdint>
#include <string_view>

namespace kumi::base {

/// The FNV-1a hash of `text`: the same on all nodes. It does not resist deliberate collisions.
constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
    std::uint64_t number = 14'695'981'039'346'656'037u;
    for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * 1'099'511'628'211u;
    return number;
}

} // namespace kumi::base
