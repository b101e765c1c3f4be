#pragma once

// Random tests that can be replayed: KUMI_SEED=N runs one seed, KUMI_SEEDS=N so many, from 1.

#include "kumi/base/number_text.hpp"

#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>

namespace kumi::simulation {

/// Ends with the first seed that fails, and names it.
template <class Run>
void for_each_seed(std::uint64_t seeds_usually, Run&& run) {
    const char* const one = std::getenv("KUMI_SEED");
    const char* const many = std::getenv("KUMI_SEEDS");
    const std::uint64_t first = one != nullptr ? base::number_in<std::uint64_t>(one).value_or(1) : 1;
    const std::uint64_t count = one != nullptr ? 1 : many != nullptr ? base::number_in<std::uint64_t>(many).value_or(1) : seeds_usually;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        run(seed);
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << "; replay it with KUMI_SEED=" << seed;
    }
}

} // namespace kumi::simulation
