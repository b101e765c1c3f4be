#include "kumi/group/mail/mismatches.hpp"

#include <gtest/gtest.h>

namespace kumi::group::mismatches_test {
namespace {

TEST(Mismatches, the_latest_ones_are_known_once_each) {
    Mismatches mismatches;
    EXPECT_FALSE(mismatches.contains(7));
    for (int i = 0; i < 2; ++i) mismatches.add(7);
    for (std::uint64_t i = 1; i < Mismatches::count_max; ++i) mismatches.add(100 + i);
    EXPECT_TRUE(mismatches.contains(7)) << "it was added twice, and takes one place";
    mismatches.add(8);
    EXPECT_FALSE(mismatches.contains(7)) << "the oldest one is forgotten";
    EXPECT_TRUE(mismatches.contains(8));
    EXPECT_TRUE(mismatches.contains(101));
}

} // namespace
} // namespace kumi::group::mismatches_test
