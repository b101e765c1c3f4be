#include "kumi/base/data/range_set.hpp"

#include "simulation/seeds.hpp"

#include <bitset>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace kumi::base {
namespace {

TEST(RangeSet, the_lowest_that_fits_is_taken) {
    RangeSet ranges;
    ranges.add(100, 10);
    ranges.add(0, 5);
    ranges.add(50, 20);
    EXPECT_EQ(ranges.take(6), 50u);
    EXPECT_EQ(ranges.take(5), 0u) << "exactly";
    EXPECT_EQ(ranges.take(5), 56u) << "what was left of it";
    EXPECT_EQ(ranges.take(11), std::nullopt);
    EXPECT_EQ(ranges.take(10), 100u);
}

TEST(RangeSet, what_is_added_joins_both_neighbours_and_nothing_that_it_does_not_touch) {
    RangeSet ranges;
    ranges.add(0, 10);
    ranges.add(20, 10);
    EXPECT_EQ(ranges.take(11), std::nullopt);
    ranges.add(10, 9);
    EXPECT_EQ(ranges.take(20), std::nullopt) << "one is still missing";
    ranges.add(19, 1);
    EXPECT_EQ(ranges.take(30), 0u);
    ranges.add(5, 0);
    EXPECT_EQ(ranges.take(0), std::nullopt) << "nothing is no range";
}

TEST(RangeSet, what_would_grow_is_what_ends_there) {
    RangeSet ranges;
    EXPECT_EQ(ranges.length_before(10), 0u);
    ranges.add(4, 6);
    EXPECT_EQ(ranges.length_before(10), 6u);
    EXPECT_EQ(ranges.length_before(11), 0u);
    EXPECT_EQ(ranges.length_before(9), 0u);
    EXPECT_EQ(ranges.length_before(4), 0u);
}

TEST(RangeSet, no_unit_is_given_twice_and_none_is_lost) {
    constexpr std::size_t units = 200;
    simulation::for_each_seed(20, [&](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        RangeSet ranges;
        ranges.add(0, units);
        std::string model(units, '.'); // free
        std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
        for (int step = 0; step < 300; ++step) {
            if (random() % 2 == 0 && !taken.empty()) {
                std::swap(taken[random() % taken.size()], taken.back());
                const auto [start, bytes] = taken.back();
                taken.pop_back();
                ranges.add(start, bytes);
                model.replace(start, bytes, bytes, '.');
                continue;
            }
            const std::size_t bytes = 1 + random() % 30;
            const std::size_t expected = model.find(std::string(bytes, '.'));
            const auto got = ranges.take(bytes);
            ASSERT_EQ(got, expected == model.npos ? std::nullopt : std::optional<std::uint64_t>(expected));
            if (!got) continue;
            model.replace(*got, bytes, bytes, 'x');
            taken.emplace_back(*got, bytes);
        }
    });
}

TEST(RangeSet, what_is_added_is_there_until_it_is_removed) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    constexpr std::size_t most = 40;
    RangeSet ranges;
    std::bitset<most> expected;
    for (int i = 0; i < 20'000; ++i) {
        const std::size_t first = random() % most, end = random() % (most + 1); // some are empty
        const bool added = random() % 2 == 0;
        const std::size_t count = end > first ? end - first : 0;
        added ? ranges.add(first, count) : ranges.remove(first, count);
        for (std::size_t at = first; at < end; ++at) expected.set(at, added);
        const std::size_t from = random() % most, to = random() % (most + 1);
        std::uint64_t missing = 0;
        for (std::size_t at = from; at < to; ++at) missing += expected.test(at) ? 0 : 1;
        ASSERT_EQ(ranges.missing(from, to > from ? to - from : 0), missing) << from << " to " << to;
    }
}

} // namespace
} // namespace kumi::base
