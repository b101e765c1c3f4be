#pragma once

#include <cstdint>
#include <string_view>

namespace kumi::base {

/// A number that two texts hardly ever share (FNV-1a); the same on all nodes. Not against who means harm.
constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
    std::uint64_t number = 14'695'981'039'346'656'037u;
    for (const char c : text) number = (number ^ static_cast<unsigned char>(c)) * 1'099'511'628'211u;
    return number;
}

} // namespace kumi::base
