#include "kumi/device/udp/seal/replay_window.hpp"

#include <gtest/gtest.h>
#include <set>

namespace kumi::device::udp {
namespace {

TEST(ReplayWindow, each_number_is_new_once) {
    ReplayWindow window;
    for (std::uint64_t number = 0; number < 3 * ReplayWindow::width; ++number) {
        EXPECT_TRUE(window.is_new(number));
        window.note(number);
        EXPECT_FALSE(window.is_new(number));
    }
}

TEST(ReplayWindow, numbers_out_of_order_are_new_once_within_the_window_and_never_behind_it) {
    for (const std::uint64_t first :
         {std::uint64_t{ReplayWindow::width}, std::uint64_t{12'345}, std::uint64_t{1} << 40}) {
        ReplayWindow window;
        window.note(first);
        const std::uint64_t oldest = first + 1 - ReplayWindow::width;
        EXPECT_FALSE(window.is_new(oldest - 1));
        EXPECT_FALSE(window.is_new(0));
        for (std::uint64_t number = first - 1; number >= oldest; --number) {
            ASSERT_TRUE(window.is_new(number)) << number;
            window.note(number);
            ASSERT_FALSE(window.is_new(number)) << number;
        }
    }
}

TEST(ReplayWindow, a_jump_ahead_forgets_what_it_leaves_behind_and_only_that) {
    for (const std::uint64_t jump : {1ull, 63ull, 64ull, 65ull, 2047ull, 2048ull, 2049ull, 1'000'000ull}) {
        ReplayWindow window;
        std::set<std::uint64_t> seen;
        for (std::uint64_t number = 5; number < 5 + ReplayWindow::width; number += 3)
            window.note(number), seen.insert(number);
        const std::uint64_t latest = *seen.rbegin() + jump;
        window.note(latest);
        seen.insert(latest);
        for (std::uint64_t number = latest < 5'000 ? 0 : latest - 5'000; number <= latest + 2; ++number) {
            const bool too_old = number + ReplayWindow::width <= latest;
            ASSERT_EQ(window.is_new(number), !too_old && !seen.contains(number))
                << number << " after a jump by " << jump;
        }
    }
}

TEST(ReplayWindow, the_newest_is_larger_than_all_that_were_seen) {
    ReplayWindow window;
    EXPECT_TRUE(window.is_newest(0));
    window.note(7);
    EXPECT_FALSE(window.is_newest(6)) << "new, but not the newest";
    EXPECT_TRUE(window.is_new(6));
    EXPECT_FALSE(window.is_newest(7));
    EXPECT_TRUE(window.is_newest(8));
}

} // namespace
} // namespace kumi::device::udp
