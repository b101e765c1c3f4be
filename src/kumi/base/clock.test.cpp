#include "kumi/base/clock.hpp"

#include <gtest/gtest.h>

namespace kumi {
namespace {

using namespace std::chrono_literals;

TEST(Clock, a_wait_without_a_deadline_is_minus_one_and_one_that_has_passed_is_zero) {
    EXPECT_EQ(milliseconds_until(never), -1);
    EXPECT_EQ(milliseconds_until(now() - 1s), 0);
    EXPECT_EQ(milliseconds_until(Instant{}), 0);
    EXPECT_EQ(milliseconds_until(Instant::min()), 0);
    for (const Instant past : {now() - 1s, Instant{}, Instant::min()}) {
        const timespec passed = time_until(past);
        EXPECT_EQ(passed.tv_sec, 0);
        EXPECT_EQ(passed.tv_nsec, 0);
    }
}

TEST(Clock, a_wait_is_not_shorter_than_the_time_that_is_left) {
    const Instant deadline = now() + 3600s + 500us;
    const int milliseconds = milliseconds_until(deadline);
    EXPECT_GE(now() + std::chrono::milliseconds(milliseconds), deadline)
        << "it would wake up too early, and ask again and again";
    EXPECT_LE(milliseconds, 3'600'001);
    EXPECT_EQ(milliseconds_until(now() + std::chrono::hours(24 * 365)), std::numeric_limits<int>::max());
    const timespec left = time_until(deadline);
    EXPECT_GE(left.tv_nsec, 0);
    EXPECT_LT(left.tv_nsec, 1'000'000'000);
    EXPECT_GE(now() + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec), deadline);
}

TEST(Clock, the_coarse_time_is_hardly_ever_before_now_and_never_far_after_it) {
    int early = 0;
    for (int i = 0; i < 1000; ++i) {
        const Instant before = now();
        const Instant coarse = now_coarse();
        const Instant after = now();
        early += coarse < before ? 1 : 0; // a virtual machine that stood still
        EXPECT_LE(coarse, after + coarse_ahead_max);
    }
    EXPECT_LT(early, 500);
}

} // namespace
} // namespace kumi
