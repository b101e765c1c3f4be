#include "kumi/base/text/size_text.hpp"

#include <charconv>
#include <limits>

namespace kumi::base {

Result<std::uint64_t> parse_size(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    unsigned shift = 0;
    if (unit == "K") shift = 10;
    else if (unit == "M") shift = 20;
    else if (unit == "G") shift = 30;
    else if (unit == "T") shift = 40;
    else if (!unit.empty() || status != std::errc{})
        return error("not a size; write a number, as in 4096, 64K, 16M or 2G");
    if (status != std::errc{} || number > (std::numeric_limits<std::uint64_t>::max() >> shift))
        return error("not a size; write a number, as in 4096, 64K, 16M or 2G");
    return number << shift;
}

} // namespace kumi::base
