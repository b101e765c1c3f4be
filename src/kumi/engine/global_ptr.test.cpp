#include "kumi/engine/global_ptr.hpp"

#include "kumi/engine/memory/word_copy.hpp"

#include <array>
#include <gtest/gtest.h>

namespace kumi {
namespace {

TEST(GlobalPtr, counts_in_elements_and_keeps_bytes) {
    const global_ptr<std::uint32_t> start(3, 7, 100);
    EXPECT_EQ((start + 2).offset(), 108u);
    EXPECT_EQ((2 + start).offset(), 108u);
    EXPECT_EQ((start - 1).offset(), 96u);
    EXPECT_EQ((start + 5) - start, 5);
    EXPECT_EQ(start - (start + 5), -5);
    auto next = start;
    EXPECT_EQ((++next).offset(), 104u);
    EXPECT_EQ((--next).offset(), 100u);
    EXPECT_EQ(start.as<std::byte>().offset(), 100u);
    EXPECT_EQ((start + 1).node(), 3u);
    EXPECT_EQ((start + 1).segment(), 7u);
    EXPECT_EQ(start.on(5), (global_ptr<std::uint32_t>(5, 7, 100)));
    EXPECT_TRUE(start);
    EXPECT_FALSE(global_ptr<int>());
    EXPECT_LT(start, start + 1);
}

/// Copies of every small size between all alignments, one over the other: each as if all were read before any is
/// written.
TEST(WordCopy, copies_may_overlap_and_touch_nothing_beside_them) {
    for (std::size_t bytes = 0; bytes <= 40; ++bytes)
        for (std::size_t from = 8; from < 24; ++from)
            for (std::size_t to = 8; to < 24; ++to)
                for (const bool is_in : {true, false}) {
                    alignas(8) std::array<std::byte, 72> memory, expected;
                    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = expected[i] = static_cast<std::byte>(i);
                    for (std::size_t i = 0; i < bytes; ++i) expected[to + i] = static_cast<std::byte>(from + i);
                    const Bytes source(memory.data() + from, bytes);
                    is_in ? engine::copy_in(memory.data() + to, source) : engine::copy_out(memory.data() + to, source);
                    ASSERT_EQ(memory, expected) << bytes << " bytes from " << from << " to " << to;
                }
}

} // namespace
} // namespace kumi
