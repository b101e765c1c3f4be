#include "contestant/mix.hpp"

#include <gtest/gtest.h>

namespace kumi::bench {
namespace {

TEST(Mix, has_the_paper_s_shares_and_repeats_by_seed) {
    Mix mix(1), same(1), other(2);
    int tiny = 0, large = 0, differing = 0;
    constexpr int draws = 10'000;
    for (int i = 0; i < draws; ++i) {
        const std::size_t size = mix.next();
        ASSERT_GE(size, 1u);
        ASSERT_LE(size, mix_bytes_max);
        ASSERT_EQ(size, same.next());
        differing += size != other.next() ? 1 : 0;
        tiny += size <= 16 ? 1 : 0;
        large += size > 1024 ? 1 : 0;
    }
    EXPECT_NEAR(tiny, 6000, 250);
    EXPECT_NEAR(large, 170, 65);
    EXPECT_GT(differing, draws / 2);
}

} // namespace
} // namespace kumi::bench
