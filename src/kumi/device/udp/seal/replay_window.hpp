#pragma once

#include <cstdint>
#include <cstring>

namespace kumi::device::udp {

/// Remembers which packet numbers have been seen: the largest, and the 2,048 before it.
class ReplayWindow {
public:
    static constexpr std::uint64_t width = 2048;

    bool is_new(std::uint64_t number) const noexcept {
        if (is_newest(number)) return true;
        if (next_ - number > width) return false;
        return (bits_[number / 64 % (width / 64)] >> (number % 64) & 1) == 0;
    }
    /// True if no number as large as this has been seen.
    bool is_newest(std::uint64_t number) const noexcept { return number >= next_; }

    void note(std::uint64_t number) noexcept {
        if (number >= next_) {
            const std::uint64_t ahead = number - next_;
            if (ahead >= width) std::memset(bits_, 0, sizeof bits_);
            else
                for (std::uint64_t i = next_; i <= number; ++i)
                    bits_[i / 64 % (width / 64)] &= ~(std::uint64_t{1} << (i % 64));
            next_ = number + 1;
        }
        bits_[number / 64 % (width / 64)] |= std::uint64_t{1} << (number % 64);
    }

private:
    std::uint64_t next_ = 0; // all numbers from here on are new
    std::uint64_t bits_[width / 64] = {};
};

} // namespace kumi::device::udp
