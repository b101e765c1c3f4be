#pragma once

#include <string_view>

namespace kumi::launch::host {

/// The longest text in bytes where each text is behind its length, four bytes with the highest first, and ends in a
/// zero, which the length counts. So Open MPI packs what it wants printed. Empty: there is none.
std::string_view longest_text(std::string_view packed) noexcept;

} // namespace kumi::launch::host
