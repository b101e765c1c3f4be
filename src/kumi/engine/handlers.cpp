#include "kumi/engine/handlers.hpp"

namespace kumi::engine {

std::vector<std::uint32_t> inverse_of(const std::vector<std::uint32_t>& numbers) {
    std::vector<std::uint32_t> inverse(numbers.size());
    for (std::uint32_t i = 0; i < numbers.size(); ++i) inverse[numbers[i]] = i;
    return inverse;
}

} // namespace kumi::engine
