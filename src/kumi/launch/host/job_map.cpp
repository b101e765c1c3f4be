#include "kumi/launch/host/job_map.hpp"

#include <algorithm>

namespace kumi::launch::host {

std::size_t part_of(const std::vector<Part>& parts, std::uint32_t node) noexcept {
    const auto after = std::upper_bound(parts.begin(), parts.end(), node,
                                        [](std::uint32_t one, const Part& part) { return one < part.first; });
    return static_cast<std::size_t>(after - parts.begin()) - 1;
}

} // namespace kumi::launch::host
