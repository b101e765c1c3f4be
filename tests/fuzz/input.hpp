#pragma once

#include "kumi/base/bytes.hpp"

#include <algorithm>
#include <cstdint>

namespace kumi::fuzz {

/// The input, byte by byte; zeros when it is used up.
class Input {
public:
    explicit Input(Bytes bytes) : rest_(bytes) {}
    bool empty() const { return rest_.empty(); }
    std::uint32_t byte() {
        if (rest_.empty()) return 0;
        const auto value = std::to_integer<std::uint32_t>(rest_.front());
        rest_ = rest_.subspan(1);
        return value;
    }
    std::uint32_t number() { return byte() | byte() << 8; }
    Bytes bytes(std::size_t count) {
        const Bytes taken = rest_.first(std::min(count, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }

private:
    Bytes rest_;
};

} // namespace kumi::fuzz
