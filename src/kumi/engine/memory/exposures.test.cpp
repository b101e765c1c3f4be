#include "kumi/engine/memory/exposures.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace kumi::engine {
namespace {

TEST(Exposures, a_piece_is_found_by_its_number_within_its_bounds_until_it_is_removed) {
    Exposures exposures;
    std::vector<std::byte> first(100), second(7);
    const auto one = exposures.add(first), two = exposures.add(second);
    ASSERT_TRUE(one && two);
    EXPECT_NE(*one, *two);
    EXPECT_TRUE(is_exposed(*one));
    EXPECT_EQ(exposures.bytes(*one), 100u);
    EXPECT_EQ(exposures.find(*one, 0, 100), first.data());
    EXPECT_EQ(exposures.find(*one, 99, 1), first.data() + 99);
    EXPECT_EQ(exposures.find(*one, 100, 0), first.data() + 100);
    EXPECT_EQ(exposures.find(*one, 0, 101), nullptr);
    EXPECT_EQ(exposures.find(*one, 100, 1), nullptr);
    EXPECT_EQ(exposures.find(*one, ~std::uint64_t{0}, 1), nullptr);
    EXPECT_EQ(exposures.find(*one, 1, ~std::uint64_t{0}), nullptr);
    EXPECT_EQ(exposures.find(*two, 0, 7), second.data());
    EXPECT_TRUE(exposures.remove(*one));
    EXPECT_EQ(exposures.find(*one, 0, 1), nullptr);
    EXPECT_EQ(exposures.find(*two, 0, 7), second.data());
    EXPECT_FALSE(exposures.remove(*one)) << "twice";
}

TEST(Exposures, numbers_that_were_never_given_find_nothing) {
    Exposures exposures;
    std::vector<std::byte> memory(8);
    const SegmentId number = *exposures.add(memory);
    for (const SegmentId other : {SegmentId{0}, SegmentId{1}, exposed_bit, number + Exposures::most, number + 1,
                                  number & ~exposed_bit, number | landing_bit}) {
        EXPECT_EQ(exposures.find(other, 0, 0), nullptr) << other;
        EXPECT_FALSE(exposures.remove(other)) << other;
    }
    EXPECT_NE(exposures.find(number, 0, 8), nullptr);
}

TEST(Exposures, memory_without_bytes_is_a_piece_too) {
    Exposures exposures;
    const SegmentId number = *exposures.add({});
    EXPECT_NE(exposures.find(number, 0, 0), nullptr);
    EXPECT_EQ(exposures.find(number, 0, 1), nullptr);
    EXPECT_TRUE(exposures.remove(number));
}

TEST(Exposures, there_are_so_many_and_what_is_removed_makes_room_under_a_new_number) {
    Exposures exposures;
    std::vector<std::byte> memory(8);
    std::vector<SegmentId> all;
    for (std::uint32_t i = 0; i < Exposures::most; ++i) all.push_back(*exposures.add(memory));
    const auto one_more = exposures.add(memory);
    ASSERT_FALSE(one_more);
    EXPECT_EQ(one_more.error().code(), ErrorCode::no_memory);
    EXPECT_NE(one_more.error().text().find("conceal some"), std::string::npos);
    EXPECT_TRUE(exposures.remove(all[500]));
    const auto again = exposures.add(memory);
    ASSERT_TRUE(again);
    EXPECT_NE(*again, all[500]);
    EXPECT_EQ(exposures.find(all[500], 0, 1), nullptr) << "the place is another's now";
    EXPECT_EQ(exposures.find(*again, 0, 8), memory.data());
}

} // namespace
} // namespace kumi::engine
