#include "kumi/device/shmem/ranges.hpp"

#include <bitset>
#include <gtest/gtest.h>
#include <random>

namespace kumi::device::shmem {
namespace {

TEST(Ranges, what_is_added_is_there_until_it_is_removed) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    constexpr std::size_t most = 40;
    Ranges ranges;
    std::bitset<most> expected;
    for (int i = 0; i < 20'000; ++i) {
        const std::size_t first = random() % most, end = random() % (most + 1); // some are empty
        const bool added = random() % 2 == 0;
        added ? ranges.add(first, end) : ranges.remove(first, end);
        for (std::size_t at = first; at < end; ++at) expected.set(at, added);
        const std::size_t from = random() % most, to = random() % (most + 1);
        std::uint64_t missing = 0;
        for (std::size_t at = from; at < to; ++at) missing += expected.test(at) ? 0 : 1;
        ASSERT_EQ(ranges.missing(from, to), missing) << from << " to " << to;
    }
}

} // namespace
} // namespace kumi::device::shmem
