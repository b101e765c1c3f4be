#include "kumi/device/mpi/arrivals.hpp"

#include <gtest/gtest.h>

namespace kumi::device::mpi {
namespace {

Held small(std::uint32_t bytes) { return {.kind = Kind::small, .bytes = bytes}; }
Held large(std::uint32_t bytes) { return {.kind = Kind::large, .bytes = bytes}; }

TEST(MpiArrivals, packets_in_order_are_taken_as_they_come) {
    Arrivals arrivals;
    for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_TRUE(arrivals.take_at_once(i));
    EXPECT_EQ(arrivals.taken(), 1000u);
    EXPECT_FALSE(arrivals.take_at_once(1001));
}

TEST(MpiArrivals, a_packet_that_completes_early_waits_for_those_before_it) {
    Arrivals arrivals;
    EXPECT_FALSE(arrivals.take_at_once(1));
    ASSERT_TRUE(arrivals.hold(1, small(11)));
    EXPECT_EQ(arrivals.accept(), nullptr);
    EXPECT_EQ(arrivals.complete(), nullptr);
    EXPECT_TRUE(arrivals.take_at_once(0));
    ASSERT_NE(arrivals.accept(), nullptr);
    ASSERT_NE(arrivals.complete(), nullptr);
    EXPECT_EQ(arrivals.complete()->bytes, 11u);
    arrivals.take();
    EXPECT_EQ(arrivals.complete(), nullptr);
    EXPECT_TRUE(arrivals.take_at_once(2));
}

TEST(MpiArrivals, what_follows_a_large_message_waits_until_that_is_there) {
    Arrivals arrivals;
    ASSERT_TRUE(arrivals.hold(0, large(1 << 20)));
    Held* const announced = arrivals.accept();
    ASSERT_NE(announced, nullptr);
    EXPECT_FALSE(arrivals.take_at_once(1));
    ASSERT_TRUE(arrivals.hold(1, small(5)));
    ASSERT_NE(arrivals.accept(), nullptr);
    EXPECT_EQ(arrivals.complete(), nullptr);
    announced->state = Held::State::complete;
    EXPECT_EQ(arrivals.complete(), announced);
    arrivals.take();
    EXPECT_EQ(arrivals.complete()->bytes, 5u);
}

TEST(MpiArrivals, large_messages_are_accepted_in_order_however_they_are_announced) {
    Arrivals arrivals;
    ASSERT_TRUE(arrivals.hold(1, large(200)));
    EXPECT_EQ(arrivals.accept(), nullptr);
    ASSERT_TRUE(arrivals.hold(0, large(100)));
    EXPECT_EQ(arrivals.accept()->bytes, 100u);
    EXPECT_EQ(arrivals.accept()->bytes, 200u);
}

TEST(MpiArrivals, a_window_is_held_whole_and_nothing_beyond_it_or_twice) {
    Arrivals arrivals;
    ASSERT_TRUE(arrivals.hold(0, large(1)));
    ASSERT_NE(arrivals.accept(), nullptr);
    for (std::uint32_t i = 1; i < window_packets; ++i) {
        EXPECT_TRUE(arrivals.hold(i, small(i)));
        EXPECT_FALSE(arrivals.hold(i, small(i)));
        EXPECT_NE(arrivals.accept(), nullptr);
    }
    EXPECT_FALSE(arrivals.hold(window_packets, small(0)));
    EXPECT_EQ(arrivals.accept(), nullptr);
    EXPECT_FALSE(arrivals.hold(static_cast<std::uint32_t>(-1), small(0)));
    arrivals.held(0).state = Held::State::complete;
    std::uint32_t taken = 0;
    for (; arrivals.complete() != nullptr; arrivals.take()) ++taken;
    EXPECT_EQ(taken, window_packets);
}

} // namespace
} // namespace kumi::device::mpi
