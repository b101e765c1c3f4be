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

} // namespace
} // namespace kumi::base
