// When the system has no memory.

#include "simulation/wire.hpp"

#include <gtest/gtest.h>

namespace kumi::reliable {
namespace {

using namespace std::chrono_literals;
using simulation::NetworkOptions;
using simulation::Wire;

constexpr std::size_t large = 200'000;
constexpr std::size_t everything = SIZE_MAX;

/// Node 0 has sent a large message and a small one to node 1, which has that much memory.
void send_to_a_node_with(std::size_t bytes, Wire& wire) {
    wire[1].limit_memory(bytes);
    ASSERT_TRUE(wire.send_bytes(0, 1, large));
    ASSERT_TRUE(wire.say(0, 1, "behind it"));
    wire.wake(0);
}

TEST(ReceiverMemory, a_message_for_which_there_is_none_waits_with_all_behind_it_and_arrives_when_there_is) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{4096}, std::size_t{1} << 17, (std::size_t{1} << 18) - 1}) {
        Wire wire;
        send_to_a_node_with(bytes, wire);
        wire.run_for(9s);
        EXPECT_TRUE(wire.sizes.empty()) << bytes;
        EXPECT_FALSE(wire[0].all_arrived()) << bytes;
        EXPECT_EQ(wire[0].gone(1), Gone::no) << bytes;
        EXPECT_EQ(wire[1].gone(0), Gone::no) << bytes;
        wire[1].limit_memory(everything);
        EXPECT_TRUE(wire.arrives(2, 2s)) << bytes;
        EXPECT_EQ(wire.sizes, (std::vector<std::size_t>{large, 9})) << bytes;
        wire.run_for(20s);
        EXPECT_TRUE(wire[0].all_arrived());
        EXPECT_EQ(wire[1].gone(0), Gone::no) << "it has passed";
    }
}

TEST(ReceiverMemory, if_it_does_not_pass_both_sides_know_why) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1} << 17}) {
        Wire wire;
        send_to_a_node_with(bytes, wire);
        EXPECT_TRUE(wire.run_until([&] { return wire[0].gone(1) != Gone::no; }, 20s)) << bytes;
        EXPECT_EQ(wire[1].gone(0), Gone::no_memory_here) << bytes;
        EXPECT_EQ(wire[1].wanted_bytes(0), large) << bytes;
        EXPECT_FALSE(wire[1].wanted_for_sending(0)) << bytes;
        EXPECT_EQ(wire[0].gone(1), Gone::no_memory_there) << bytes;
        EXPECT_GE(wire.time(), 10s) << bytes;
        EXPECT_TRUE(wire.sizes.empty()) << bytes;
        EXPECT_FALSE(wire.say(0, 1, "hello?"));
        wire[1].limit_memory(everything);
        wire.run_for(1s);
        EXPECT_TRUE(wire.sizes.empty()) << "what was given up is not delivered later";
    }
}

TEST(ReceiverMemory, one_peer_that_starves_is_no_reason_to_lose_others) {
    NetworkOptions options;
    options.nodes = 3;
    Wire wire(options);
    wire[1].limit_memory(std::size_t{1} << 17);
    ASSERT_TRUE(wire.send_bytes(0, 1, large));
    wire.wake(0);
    for (int i = 0; i < 150; ++i) {
        ASSERT_TRUE(wire.say(2, 1, "small"));
        wire.wake(2);
        wire.run_for(100ms);
    }
    EXPECT_EQ(wire[1].gone(0), Gone::no_memory_here);
    EXPECT_EQ(wire[1].gone(2), Gone::no);
    EXPECT_EQ(wire.sizes.size(), 150u);
}

TEST(ReceiverMemory, a_message_that_is_half_there_is_completed) {
    Wire wire;
    ASSERT_TRUE(wire.send_bytes(0, 1, large));
    wire.wake(0);
    ASSERT_TRUE(wire.run_until([&] { return wire[1].bytes_used() >= large; }, 1s));
    wire[1].limit_memory(0);
    EXPECT_TRUE(wire.arrives(1, 5s)) << "its memory was there before its first piece was acknowledged";
}

/// Node 0 tries to send to node 1, ten times a second.
bool try_for(Duration time, Wire& wire) {
    bool is_sent = false;
    for (const Duration end = wire.time() + time; !is_sent && wire.time() < end;) {
        is_sent = wire.send_bytes(0, 1, large);
        wire.wake(0);
        wire.run_for(100ms);
    }
    return is_sent;
}

TEST(SenderMemory, a_message_that_finds_none_for_ten_seconds_is_an_error_that_says_how_much_was_wanted) {
    Wire wire;
    wire[0].limit_memory(large / 2);
    EXPECT_FALSE(try_for(9500ms, wire));
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    EXPECT_FALSE(try_for(1s, wire));
    EXPECT_EQ(wire[0].gone(1), Gone::no_memory_here);
    EXPECT_EQ(wire[0].wanted_bytes(1), large);
    EXPECT_TRUE(wire[0].wanted_for_sending(1));
    wire.run_for(1s);
    EXPECT_EQ(wire[1].gone(0), Gone::no_memory_there) << "the other side is told";
}

TEST(SenderMemory, one_that_finds_some_in_time_starts_the_time_anew) {
    Wire wire;
    for (int i = 0; i < 3; ++i) {
        wire[0].limit_memory(0);
        EXPECT_FALSE(try_for(8s, wire));
        wire[0].limit_memory(everything);
        EXPECT_TRUE(try_for(100ms, wire));
        wire.run_for(100ms);
    }
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    EXPECT_EQ(wire.sizes.size(), 3u);
}

TEST(SenderMemory, a_program_that_does_not_try_any_more_loses_nobody) {
    Wire wire;
    wire[0].limit_memory(0);
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(try_for(3s, wire));
        wire.run_for(4s);
    }
    EXPECT_EQ(wire[0].gone(1), Gone::no);
    EXPECT_EQ(wire[0].next_deadline(), never) << "it is not looked at for ever";
    wire[0].limit_memory(everything);
    EXPECT_TRUE(try_for(100ms, wire));
    EXPECT_TRUE(wire.arrives(1, 1s));
}

TEST(SenderMemory, two_tries_with_a_long_computation_between_them_lose_nobody) {
    Wire wire;
    wire[0].limit_memory(0);
    EXPECT_FALSE(try_for(100ms, wire));
    wire.freeze(0, 15s);
    wire.run_for(15s - 1ms);
    EXPECT_FALSE(wire.send_bytes(0, 1, large)); // before it looks at the clock again
    wire.wake(0);
    wire.run_for(200ms);
    EXPECT_EQ(wire[0].gone(1), Gone::no);
}

TEST(SenderMemory, small_messages_that_find_some_do_not_hide_that_a_large_one_does_not) {
    Wire wire;
    wire[0].limit_memory(large / 2);
    for (int i = 0; i < 110; ++i) {
        EXPECT_FALSE(wire.send_bytes(0, 1, large));
        for (int k = 0; k < 3; ++k) wire.say(0, 1, "small"); // the first has a way of its own
        wire.wake(0);
        wire.run_for(100ms);
    }
    EXPECT_EQ(wire[0].gone(1), Gone::no_memory_here);
}

TEST(SenderMemory, want_of_room_is_not_want_of_memory) {
    NetworkOptions options;
    options.endpoint.silence_max = Duration{0};
    Wire wire(options);
    wire.cut(0, 1, true);
    for (int i = 0; i < 300; ++i) {
        wire.send_bytes(0, 1, large);
        wire.wake(0);
        wire.run_for(100ms);
    }
    EXPECT_EQ(wire[0].gone(1), Gone::no) << "back-pressure may last";
}

} // namespace
} // namespace kumi::reliable
