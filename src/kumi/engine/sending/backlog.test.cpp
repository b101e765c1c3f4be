#include "kumi/engine/sending/backlog.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

TEST(Backlog, holds_requests_back_while_more_waits_than_may) {
    Backlog backlog(100);
    EXPECT_FALSE(backlog.is_full());
    backlog.add(60);
    backlog.add(40);
    EXPECT_EQ(backlog.bytes(), 100u);
    EXPECT_FALSE(backlog.is_full()) << "exactly";
    EXPECT_EQ(backlog.requests_limit(), requests_max);
    backlog.add(1);
    EXPECT_TRUE(backlog.is_full());
    EXPECT_EQ(backlog.requests_limit(), 0u);
    backlog.remove(1);
    EXPECT_FALSE(backlog.is_full());
    EXPECT_EQ(backlog.requests_limit(), requests_max);
    EXPECT_EQ(backlog.bytes(), 100u);
}

/// What the proof in outbox.hpp rests on.
TEST(Backlog, while_requests_of_a_pressure_are_held_back_one_that_comes_to_wait_has_more) {
    for (const std::size_t bytes_max : {0u, 1u, 100u}) {
        Backlog backlog(bytes_max);
        for (std::size_t i = 0; i < 1000; ++i) {
            backlog.add(1);
            for (std::uint32_t pressure = 0; pressure <= pressure_max; ++pressure) {
                if (backlog.is_full(pressure)) {
                    EXPECT_GT(backlog.pressure(), pressure) << i;
                }
            }
            EXPECT_FALSE(backlog.is_full(pressure_max));
            EXPECT_LE(backlog.pressure(), pressure_max);
        }
        EXPECT_TRUE(backlog.is_full(pressure_max - 1));
    }
}

TEST(Backlog, each_step_of_pressure_takes_as_much_as_may_wait) {
    Backlog backlog(100);
    EXPECT_EQ(backlog.pressure(), 0u);
    backlog.add(99);
    EXPECT_EQ(backlog.pressure(), 0u);
    backlog.add(1);
    EXPECT_EQ(backlog.pressure(), 1u);
    backlog.add(600);
    EXPECT_EQ(backlog.pressure(), 7u);
    EXPECT_TRUE(backlog.is_full(5));
    EXPECT_FALSE(backlog.is_full(6));
    backlog.add(100'000);
    EXPECT_EQ(backlog.pressure(), pressure_max);
}

} // namespace
} // namespace kumi::engine
