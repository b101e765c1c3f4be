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
    EXPECT_TRUE(windows.on_told(1, {{overhead, 0, 0}}));
    EXPECT_TRUE(windows.has_room(1, Flow::plain));
    EXPECT_FALSE(windows.has_room(1, Flow::forwarded));
    EXPECT_FALSE(windows.on_told(1, {{overhead - 1, 0, 0}})) << "less than before";
    EXPECT_FALSE(windows.on_told(1, {{overhead, window + overhead + 1, 0}})) << "more than was sent";
    EXPECT_FALSE(windows.on_told(1, {{overhead + 1, window + overhead + 1, 0}})) << "nothing of it counts";
    EXPECT_FALSE(windows.has_room(1, Flow::forwarded));
    EXPECT_TRUE(windows.on_told(1, {{overhead, window + overhead, 0}}));
    EXPECT_TRUE(windows.has_room(1, Flow::forwarded));
}

TEST(ByteWindows, all_nodes_of_a_large_job_together_leave_little_on_a_node) {
    EXPECT_EQ(ByteWindows(1).bytes(), std::size_t{8} << 20);
    EXPECT_EQ(ByteWindows(16).bytes(), std::size_t{4} << 20);
    EXPECT_EQ(ByteWindows(1000).bytes(), (std::size_t{64} << 20) / 1000);
    EXPECT_EQ(ByteWindows(100'000).bytes(), std::size_t{64} << 10) << "a window is not smaller";
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

TEST(ByteWindows, as_many_requests_as_may_be_under_way_fit_into_a_window_unless_they_are_large) {
    for (const Node nodes : {1u, 8u, 9u, 100u, 1000u, 100'000u}) {
        const ByteWindows windows(nodes);
        const std::size_t body = windows.bytes() / requests_max;
        EXPECT_FALSE(windows.is_large(body + head_bytes_max)) << nodes;
        EXPECT_TRUE(windows.is_large(body + head_bytes_max + 1)) << nodes;
    }
    EXPECT_FALSE(ByteWindows(8).is_large(chunk_bytes + head_bytes_max)) << "with few nodes no piece of a put is";
}

TEST(ByteWindows, another_bound_for_all_makes_windows_smaller) {
    EXPECT_EQ(ByteWindows(4, 4 << 20).bytes(), std::size_t{1} << 20);
    EXPECT_EQ(ByteWindows(4, 0).bytes(), std::size_t{64} << 10);
}

/// The third part of the proof in outbox.hpp: whatever requests of less pressure have taken, there is room for one of
/// more pressure when the receiver has told of the others, but those that it need not tell of.
TEST(ByteWindows, requests_of_less_pressure_never_take_all_of_a_window) {
    constexpr std::size_t largest = request_bytes_max + head_bytes_max;
    for (const Node nodes : {2u, 16u, 1000u}) {
        ByteWindows sender(nodes), receiver(nodes);
        for (std::uint32_t pressure = 0; pressure < pressure_max; ++pressure) {
            while (sender.has_room(1, Flow::large, pressure)) sender.on_sent(1, Flow::large, largest);
            EXPECT_TRUE(sender.has_room(1, Flow::large, pressure + 1)) << "these are held back";
            // Others were sent and handled, and just not told of.
            std::size_t untold = 0;
            const std::size_t quarter = sender.bytes() / 4;
            while (untold + ByteWindows::overhead <= quarter) {
                const std::size_t bytes = std::min(largest, quarter - untold - ByteWindows::overhead);
                sender.on_sent(1, Flow::large, bytes);
                ASSERT_FALSE(receiver.on_taken(0, Flow::large, bytes));
                untold += bytes + ByteWindows::overhead;
            }
            EXPECT_TRUE(sender.has_room(1, Flow::large, pressure + 1)) << nodes << " nodes, pressure " << pressure;
            ASSERT_TRUE(receiver.on_taken(0, Flow::large, 0));
            sender.on_sent(1, Flow::large, 0);
            const Taken told = receiver.tell(0);
            EXPECT_TRUE(sender.on_told(1, told));
        }
    }
}

} // namespace
} // namespace kumi::engine
