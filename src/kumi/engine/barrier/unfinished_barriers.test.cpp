#include "kumi/engine/barrier/unfinished_barriers.hpp"

#include <gtest/gtest.h>

namespace kumi::engine {
namespace {

TEST(UnfinishedBarriers, are_taken_by_set_the_oldest_first_and_once) {
    UnfinishedBarriers unfinished;
    EXPECT_FALSE(unfinished.take(0));
    for (const std::uint32_t sequence : {1u, 0xFFFF'FFFFu, 0u}) unfinished.add({0, sequence});
    unfinished.add({7, 3});
    EXPECT_EQ(unfinished.take(0)->sequence, 0xFFFF'FFFFu) << "sequences wrap";
    EXPECT_EQ(unfinished.take(0)->sequence, 0u);
    EXPECT_EQ(unfinished.take(7)->sequence, 3u);
    EXPECT_FALSE(unfinished.take(7));
    unfinished.add({7, 4});
    unfinished.forget(0);
    EXPECT_FALSE(unfinished.take(0));
    EXPECT_EQ(unfinished.take(7)->sequence, 4u);
}

} // namespace
} // namespace kumi::engine
