#include "sizes/sizes.hpp"

#include <gtest/gtest.h>

namespace kumi::bench {
namespace {

TEST(Sizes, half_of_the_bandwidth_is_found_between_two_sizes) {
    EXPECT_DOUBLE_EQ(half_bandwidth_bytes({{8, 1}, {32, 4}, {128, 8}, {512, 8}}), 32);
    EXPECT_DOUBLE_EQ(half_bandwidth_bytes({{8, 1}, {32, 4}, {128, 4}}), 16) << "bandwidth doubles as the size does";
    EXPECT_DOUBLE_EQ(half_bandwidth_bytes({{8, 5}, {32, 4}}), 8) << "the smallest has it already";
    EXPECT_DOUBLE_EQ(half_bandwidth_bytes({{64, 5}}), 64);
}

TEST(Sizes, each_row_is_one_size_of_one_metric_in_one_place) {
    const auto rows = sizes_rows();
    EXPECT_EQ(rows.size(), 48u);
    EXPECT_EQ(rows.front(), "sizes.latency.shmem.8");
    EXPECT_EQ(rows.back(), "sizes.bandwidth.udp.16777216");
}

} // namespace
} // namespace kumi::bench
