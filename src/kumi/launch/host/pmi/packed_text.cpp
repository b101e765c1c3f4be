#include "kumi/launch/host/pmi/packed_text.hpp"

#include <cstddef>
#include <cstdint>

namespace kumi::launch::host {

std::string_view longest_text(std::string_view packed) noexcept {
    constexpr std::size_t length_bytes = 4;
    std::string_view longest;
    for (std::size_t at = 0; at + length_bytes < packed.size(); ++at) {
        std::uint32_t length = 0;
        for (const char byte : packed.substr(at, length_bytes)) length = length << 8 | static_cast<unsigned char>(byte);
        const std::string_view rest = packed.substr(at + length_bytes);
        if (length <= longest.size() + 1 || length > rest.size()) continue;
        if (rest.find('\0') == length - 1) longest = rest.substr(0, length - 1);
    }
    return longest;
}

} // namespace kumi::launch::host
