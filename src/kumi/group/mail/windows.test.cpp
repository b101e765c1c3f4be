#include "kumi/group/mail/windows.hpp"

#include <gtest/gtest.h>

namespace kumi::group::windows_test {
namespace {

constexpr std::uint64_t quarter = Windows::window_bytes / 4 - Windows::message_cost; // with its cost

TEST(Windows, a_node_may_be_sent_a_window_that_it_has_not_received) {
    Windows windows(3);
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(windows.has_room(1, quarter)) << i;
        windows.on_sent(1, quarter);
    }
    EXPECT_FALSE(windows.has_room(1, 0)) << "an empty message costs something, too";
    EXPECT_TRUE(windows.has_room(2, 4 * quarter)) << "each node has a window of its own";
    EXPECT_TRUE(windows.on_taken(1, Windows::window_bytes / 4));
    EXPECT_TRUE(windows.has_room(1, quarter));
    EXPECT_FALSE(windows.has_room(1, quarter + 1));
}

TEST(Windows, a_node_cannot_have_received_more_than_it_was_sent) {
    Windows windows(2);
    EXPECT_FALSE(windows.on_taken(1, 1));
    windows.on_sent(1, 0);
    EXPECT_FALSE(windows.on_taken(1, Windows::message_cost + 1));
    EXPECT_TRUE(windows.on_taken(1, Windows::message_cost));
    EXPECT_TRUE(windows.on_taken(1, Windows::message_cost)) << "nothing new";
    EXPECT_FALSE(windows.on_taken(1, Windows::message_cost - 1)) << "counts do not go back";
    EXPECT_TRUE(windows.has_room(1, Windows::window_bytes - Windows::message_cost));
    EXPECT_FALSE(windows.has_room(1, Windows::window_bytes - Windows::message_cost + 1));
}

TEST(Windows, a_sender_is_told_when_half_of_its_window_was_received_since_the_last_time) {
    Windows windows(2);
    EXPECT_FALSE(windows.on_received(1, quarter));
    EXPECT_TRUE(windows.on_received(1, quarter));
    EXPECT_EQ(windows.received(1), Windows::window_bytes / 2);
    EXPECT_EQ(windows.received(0), 0u);
    windows.on_told(1, windows.received(1));
    EXPECT_FALSE(windows.on_received(1, quarter));
    windows.on_told(1, windows.received(1)); // with some other message
    EXPECT_FALSE(windows.on_received(1, quarter));
    EXPECT_TRUE(windows.on_received(1, quarter));
}

TEST(Windows, counts_wrap) {
    Windows windows(2);
    std::uint32_t taken = 0;
    for (std::uint64_t all = 0; all <= std::uint64_t{1} << 32; all += Windows::window_bytes) {
        ASSERT_TRUE(windows.has_room(1, Windows::window_bytes - Windows::message_cost));
        windows.on_sent(1, Windows::window_bytes - Windows::message_cost);
        ASSERT_FALSE(windows.has_room(1, 0));
        ASSERT_TRUE(windows.on_taken(1, taken += Windows::window_bytes));
    }
}

} // namespace
} // namespace kumi::group::windows_test
