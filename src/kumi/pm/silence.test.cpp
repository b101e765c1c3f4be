#include "kumi/pm/silence.hpp"

#include <gtest/gtest.h>

namespace kumi::pm {
namespace {

using namespace std::chrono_literals;

TEST(Silence, is_told_once_after_two_seconds_and_once_when_it_ends) {
    Silence silence;
    const Instant start{1h};
    EXPECT_EQ(silence.look(0s, start), Silence::News::none);
    EXPECT_EQ(silence.look(2s - 1ns, start + 2s - 1ns), Silence::News::none);
    EXPECT_EQ(silence.look(2s, start + 2s), Silence::News::began);
    EXPECT_EQ(silence.seconds(start + 2s), 2);
    EXPECT_EQ(silence.look(3s, start + 3s), Silence::News::none);
    EXPECT_EQ(silence.look(0s, start + 5s), Silence::News::ended);
    EXPECT_EQ(silence.seconds(start + 5s), 5);
    EXPECT_EQ(silence.look(0s, start + 6s), Silence::News::none);
    EXPECT_EQ(silence.look(4s, start + 20s), Silence::News::began) << "the next one is told, too";
    EXPECT_EQ(silence.seconds(start + 20s), 4);
}

} // namespace
} // namespace kumi::pm
