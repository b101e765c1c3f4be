#include "kumi/device/composite/letters/relay_window.hpp"

#include <gtest/gtest.h>

namespace kumi::device::composite {
namespace {

using namespace std::chrono_literals;

class OneRelayWindow : public testing::Test {
protected:
    /// Gives one more message, which arrives after `took`.
    void pass(Duration took) {
        window.on_given(next, clock);
        clock += took;
        window.on_arrived(++next, clock);
    }

    RelayWindow window;
    Sequence next = 0;
    Instant clock{1h};
};

TEST_F(OneRelayWindow, it_doubles_while_messages_arrive_soon_up_to_its_largest_size) {
    EXPECT_EQ(window.bytes(), 64u << 10);
    pass(1ms);
    EXPECT_EQ(window.bytes(), 128u << 10);
    for (int i = 0; i < 5; ++i) pass(1ms);
    EXPECT_EQ(window.bytes(), 256u << 10);
}

TEST_F(OneRelayWindow, it_is_halved_while_messages_wait_down_to_its_smallest_size) {
    pass(1ms);
    pass(55ms);
    EXPECT_EQ(window.bytes(), 64u << 10);
    for (int i = 0; i < 5; ++i) pass(1s);
    EXPECT_EQ(window.bytes(), 16u << 10);
}

TEST_F(OneRelayWindow, it_stays_when_messages_wait_a_little) {
    pass(1ms);
    pass(13ms);
    pass(53ms);
    EXPECT_EQ(window.bytes(), 128u << 10);
}

TEST_F(OneRelayWindow, a_path_that_is_slow_by_itself_is_not_taken_for_a_queue) {
    for (int i = 0; i < 5; ++i) pass(200ms);
    EXPECT_EQ(window.bytes(), 256u << 10);
    pass(849ms);
    EXPECT_EQ(window.bytes(), 256u << 10);
    pass(851ms);
    EXPECT_EQ(window.bytes(), 128u << 10);
}

TEST_F(OneRelayWindow, one_message_at_a_time_is_timed) {
    window.on_given(0, clock);
    window.on_given(1, clock + 1s);
    window.on_arrived(0, clock + 1s); // not that one
    EXPECT_EQ(window.bytes(), 64u << 10);
    window.on_arrived(2, clock + 2ms);
    EXPECT_EQ(window.bytes(), 128u << 10);
    window.on_arrived(2, clock + 2h);
    EXPECT_EQ(window.bytes(), 128u << 10);
}

TEST_F(OneRelayWindow, it_is_halved_when_nothing_arrives_in_time) {
    window.on_given(0, clock);
    window.on_timeout();
    EXPECT_EQ(window.bytes(), 32u << 10);
    for (int i = 0; i < 5; ++i) window.on_timeout();
    EXPECT_EQ(window.bytes(), 16u << 10);
    window.on_arrived(1, clock + 1ms); // of whichever copy
    EXPECT_EQ(window.bytes(), 16u << 10);
}

TEST_F(OneRelayWindow, on_another_path_it_is_no_larger_than_at_the_start_and_times_are_new) {
    for (int i = 0; i < 5; ++i) pass(1ms);
    window.on_new_path();
    EXPECT_EQ(window.bytes(), 64u << 10);
    pass(300ms); // as long as that path takes
    EXPECT_EQ(window.bytes(), 128u << 10);
    for (int i = 0; i < 5; ++i) pass(2s);
    window.on_new_path();
    EXPECT_EQ(window.bytes(), 16u << 10);
}

TEST_F(OneRelayWindow, numbers_wrap) {
    next = 0xffffffff;
    pass(1ms);
    EXPECT_EQ(next, 0u);
    EXPECT_EQ(window.bytes(), 128u << 10);
}

} // namespace
} // namespace kumi::device::composite
