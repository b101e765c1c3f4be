#pragma once

// Random tests that can be replayed. A test runs as many seeds as it usually does, from 1 on: the same in every run.
// KUMI_SEED=N runs one seed, KUMI_SEEDS=N so many, KUMI_FIRST_SEED=N begins with that one, as `make soak` does.

#include "kumi/base/text/number_text.hpp"

#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>

namespace kumi::simulation {

/// The number in an environment variable; nothing if it is unset. A value that is no number ends the program: the test
/// would run other seeds than its user believes.
inline std::optional<std::uint64_t> number_from(const char* variable) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    const auto number = base::number_in<std::uint64_t>(text);
    if (!number) {
        std::fprintf(stderr, "%s=%s: write a whole number\n", variable, text);
        std::exit(2);
    }
    return number;
}

struct Seeds {
    std::uint64_t first = 1;
    std::uint64_t count = 0;
};

/// The seeds that a test is to run.
inline Seeds wanted_seeds(std::uint64_t seeds_usually) {
    if (const auto one = number_from("KUMI_SEED")) return {*one, 1};
    return {number_from("KUMI_FIRST_SEED").value_or(1), number_from("KUMI_SEEDS").value_or(seeds_usually)};
}

/// Ends with the first seed that fails, and names it.
template <class Run>
void for_each_seed(std::uint64_t seeds_usually, Run&& run) {
    const Seeds seeds = wanted_seeds(seeds_usually);
    for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
        run(seed);
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << "; replay it with KUMI_SEED=" << seed;
    }
}

} // namespace kumi::simulation
