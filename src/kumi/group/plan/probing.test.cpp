#include "kumi/group/plan/probing.hpp"

#include <gtest/gtest.h>
#include <random>

namespace kumi::group {
namespace {

constexpr Costs usual{.overhead_us = 1, .latency_us = 10, .us_per_byte = 0.001, .origin = Origin::usual};

/// As a network of these costs would answer; one round in which nothing disturbs, and others where something does.
Costs probe(const Costs& real, std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    Probing probing;
    for (std::size_t count = 0; const auto train = probing.next(); ++count) {
        double us = 2 * real.latency_us + (train->messages - 1) * real.overhead_us +
                    train->messages * train->bytes * real.us_per_byte;
        if (count / 3 != seed % Probing::rounds) us += static_cast<double>(random() % 1000);
        probing.on_back(std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::micro>(us)));
    }
    return probing.costs(usual);
}

TEST(Probing, finds_what_messages_take_though_most_are_disturbed) {
    for (std::uint64_t seed = 0; seed < 8; ++seed)
        for (const Costs& real : {Costs{0.3, 1.2, 0.0001}, Costs{5, 20, 0.001}, Costs{5, 500, 0.08}}) {
            const Costs found = probe(real, seed);
            EXPECT_EQ(found.origin, Origin::measured);
            EXPECT_NEAR(found.overhead_us, real.overhead_us, 0.01);
            EXPECT_NEAR(found.latency_us, real.latency_us, 0.01);
            EXPECT_NEAR(found.us_per_byte, real.us_per_byte, 1e-6);
        }
}

TEST(Probing, messages_that_share_a_packet_take_little_but_something) {
    EXPECT_DOUBLE_EQ(probe({0, 20, 0.001}).overhead_us, 0.2);
}

TEST(Probing, an_overhead_is_part_of_the_latency) { EXPECT_DOUBLE_EQ(probe({50, 20, 0.001}).overhead_us, 20); }

TEST(Probing, every_train_goes_as_often_as_the_others) {
    Probing probing;
    std::vector<std::uint32_t> bytes;
    for (; const auto train = probing.next(); probing.on_back(Duration{1000}))
        bytes.push_back(train->messages * 10'000 + train->bytes);
    EXPECT_EQ(bytes.size(), 3 * Probing::rounds);
    for (std::size_t i = 3; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], bytes[i - 3]);
}

TEST(Probing, what_makes_no_sense_is_not_believed) {
    for (const Costs& absurd : {Costs{1, 2000, 0.001}, Costs{0.01, 0.02, 0.001}, Costs{1, 10, 0}, Costs{1, 10, 1}})
        EXPECT_EQ(probe(absurd).origin, Origin::usual);
}

} // namespace
} // namespace kumi::group
