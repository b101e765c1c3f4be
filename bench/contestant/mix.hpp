#pragma once

// The message sizes of real parallel programs, as the DSE paper counted them: most are tiny, a few are large.

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

namespace kumi::bench {

inline constexpr std::size_t mix_bytes_max = 8192;

/// A sequence of sizes drawn from the mix, which repeats. Equal seeds give equal sizes.
class Mix {
public:
    explicit Mix(std::uint32_t seed) {
        std::mt19937 random(seed);
        for (std::uint16_t& size : sizes_) size = draw(random);
    }

    std::size_t next() noexcept { return sizes_[at_++ % sizes_.size()]; }

private:
    /// Does not use the distributions of std, which may differ between libraries.
    static std::uint16_t draw(std::mt19937& random) {
        const auto per_mille = random() % 1000;
        const auto between = [&](std::uint32_t least, std::uint32_t most) {
            return static_cast<std::uint16_t>(least + random() % (most - least + 1));
        };
        if (per_mille < 600) return between(1, 16);
        if (per_mille < 800) return between(17, 32);
        if (per_mille < 980) return between(33, 128);
        if (per_mille < 983) return between(129, 1024);
        return between(1025, mix_bytes_max);
    }

    std::array<std::uint16_t, 1 << 14> sizes_;
    std::size_t at_ = 0;
};

} // namespace kumi::bench
