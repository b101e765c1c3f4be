#include "kumi/engine/sending/byte_windows.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

constexpr std::size_t overhead = ByteWindows::overhead;

TEST(ByteWindows, so_many_bytes_are_sent_and_one_message_more_before_the_receiver_takes_them) {
    ByteWindows windows(3);
    const std::size_t window = windows.bytes();
    EXPECT_EQ(window, std::size_t{8} << 20);
    for (const Flow flow : {Flow::plain, Flow::forwarded}) {
        EXPECT_TRUE(windows.has_room(1, flow));
        windows.on_sent(1, flow, window - overhead);
        EXPECT_TRUE(windows.has_room(1, flow)) << "exactly";
        windows.on_sent(1, flow, 0);
        EXPECT_FALSE(windows.has_room(1, flow));
        EXPECT_TRUE(windows.has_room(2, flow)) << "each node has its own";
    }
    EXPECT_TRUE(windows.on_told(1, {{overhead, 0}}));
    EXPECT_TRUE(windows.has_room(1, Flow::plain));
    EXPECT_FALSE(windows.has_room(1, Flow::forwarded));
    EXPECT_FALSE(windows.on_told(1, {{overhead - 1, 0}})) << "less than before";
    EXPECT_FALSE(windows.on_told(1, {{overhead, window + overhead + 1}})) << "more than was sent";
    EXPECT_FALSE(windows.on_told(1, {{overhead + 1, window + overhead + 1}})) << "nothing of it counts";
    EXPECT_FALSE(windows.has_room(1, Flow::forwarded));
    EXPECT_TRUE(windows.on_told(1, {{overhead, window + overhead}}));
    EXPECT_TRUE(windows.has_room(1, Flow::forwarded));
}

TEST(ByteWindows, all_nodes_of_a_large_job_together_leave_little_on_a_node) {
    EXPECT_EQ(ByteWindows(1).bytes(), std::size_t{8} << 20);
    EXPECT_EQ(ByteWindows(16).bytes(), std::size_t{4} << 20);
    EXPECT_EQ(ByteWindows(1000).bytes(), std::size_t{1} << 20);
}

TEST(ByteWindows, the_sender_is_told_when_a_quarter_of_a_window_has_been_taken) {
    ByteWindows windows(2);
    const std::size_t quarter = windows.bytes() / 4;
    EXPECT_FALSE(windows.on_taken(1, Flow::plain, quarter - overhead)) << "exactly";
    EXPECT_FALSE(windows.on_taken(1, Flow::forwarded, 1000)) << "each flow has its own";
    EXPECT_TRUE(windows.on_taken(1, Flow::plain, 0));
    const Taken told = windows.tell(1);
    EXPECT_EQ(told.bytes[0], quarter + overhead);
    EXPECT_EQ(told.bytes[1], 1000 + overhead) << "all flows are told";
    EXPECT_FALSE(windows.on_taken(1, Flow::plain, quarter - overhead)) << "counted from what was told";
    EXPECT_FALSE(windows.on_taken(1, Flow::forwarded, quarter - overhead));
    EXPECT_EQ(windows.tell(1).bytes[0], 2 * quarter + overhead);
}

} // namespace
} // namespace kumi::engine
