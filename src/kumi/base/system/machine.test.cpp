#include "kumi/base/system/machine.hpp"

#include <bit>
#include <gtest/gtest.h>
#include <sched.h>

namespace kumi::base {
namespace {

TEST(Machine, the_bitmap_of_cores_has_as_many_as_there_are) {
    unsigned count = 0;
    const auto bitmap = cores_allowed_bitmap();
    for (const std::byte byte : bitmap) count += static_cast<unsigned>(std::popcount(static_cast<unsigned>(byte)));
    EXPECT_EQ(count, cores_allowed());
    cpu_set_t set;
    CPU_ZERO(&set);
    ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
    for (std::size_t core = 0; core < bitmap.size() * 8; ++core)
        EXPECT_EQ((bitmap[core / 8] >> (core % 8) & std::byte{1}) != std::byte{0}, CPU_ISSET(core, &set) != 0)
            << "core " << core;
}

TEST(Machine, there_is_some_memory_and_less_than_any_machine_has) {
    EXPECT_GT(memory_available_bytes(), std::uint64_t{1} << 20);
    EXPECT_LT(memory_available_bytes(), std::uint64_t{1} << 50);
}

TEST(Machine, sizes_change_their_unit_at_1024) {
    EXPECT_EQ(readable_bytes(1023), "1023 B");
    EXPECT_EQ(readable_bytes(1024), "1 KiB");
    EXPECT_EQ(readable_bytes((std::uint64_t{1} << 20) - 1), "1024.0 KiB");
    EXPECT_EQ(readable_bytes(std::uint64_t{1} << 20), "1 MiB");
    EXPECT_EQ(readable_bytes(std::uint64_t{1} << 30), "1 GiB");
    EXPECT_EQ(readable_bytes(std::uint64_t{1} << 52), "4096 TiB") << "there is no larger unit";
}

TEST(Machine, a_size_beside_its_limit_is_told_in_bytes_where_both_would_read_alike) {
    EXPECT_EQ(readable_bytes_beside((256 << 10) + 1, 256 << 10), "262145 B");
    EXPECT_EQ(readable_bytes_beside((1 << 20) + 2, (1 << 20) + 1), "1048578 B") << "both are rounded";
    EXPECT_EQ(readable_bytes_beside(257 << 10, 256 << 10), "257 KiB");
    EXPECT_EQ(readable_bytes_beside(256 << 10, 256 << 10), "256 KiB");
    EXPECT_EQ(readable_bytes_beside((10 << 10) + 512, 10 << 10), "10.5 KiB");
}

} // namespace
} // namespace kumi::base
