#include "kumi/pm/message.hpp"

#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace kumi::pm {
namespace {

/// Notes what comes back.
class Buffers final : public BufferOwner {
public:
    void release(std::uint64_t token) noexcept override { released.push_back(token); }
    std::vector<std::uint64_t> released;
};

constexpr std::array<std::byte, 3> content{std::byte{1}, std::byte{2}, std::byte{3}};

TEST(Message, one_in_a_ring_is_copied_when_it_is_kept) {
    auto bytes = content;
    Message message(7, bytes);
    EXPECT_FALSE(message.was_kept());
    const KeptMessage kept = message.keep();
    EXPECT_TRUE(message.was_kept());
    bytes.fill(std::byte{0xEE}); // the ring moves on
    EXPECT_TRUE(kept);
    EXPECT_EQ(kept.source(), 7u);
    EXPECT_TRUE(std::ranges::equal(kept.bytes(), content));
}

TEST(Message, an_empty_one_can_be_kept_too) {
    Message message(7, {});
    const KeptMessage kept = message.keep();
    EXPECT_TRUE(kept);
    EXPECT_TRUE(kept.bytes().empty());
}

TEST(Message, a_buffer_is_kept_without_a_copy_and_goes_back_once) {
    Buffers buffers;
    Message message(7, content, &buffers, 42);
    {
        KeptMessage kept = message.keep();
        EXPECT_EQ(kept.bytes().data(), content.data());
        KeptMessage moved = std::move(kept);
        EXPECT_FALSE(kept); // NOLINT: that is the test
        EXPECT_TRUE(moved);
        EXPECT_EQ(moved.source(), 7u);
        kept = std::move(moved);
        EXPECT_TRUE(buffers.released.empty());
    }
    EXPECT_EQ(buffers.released, std::vector<std::uint64_t>{42});
}

TEST(Message, one_that_takes_the_place_of_another_gives_that_back) {
    Buffers buffers;
    KeptMessage kept(1, content, buffers, 5);
    kept = KeptMessage(2, content, buffers, 6);
    EXPECT_EQ(buffers.released, std::vector<std::uint64_t>{5});
    EXPECT_EQ(kept.source(), 2u);
    kept = {};
    EXPECT_EQ(buffers.released, (std::vector<std::uint64_t>{5, 6}));
    EXPECT_FALSE(kept);
}

TEST(Message, the_same_under_another_number_or_without_its_header_keeps_the_same_buffer) {
    Buffers buffers;
    Message whole(7, content, &buffers, 42);
    Message renamed(whole, 3);
    EXPECT_EQ(renamed.source(), 3u);
    EXPECT_EQ(renamed.bytes().data(), content.data());
    Message inner(renamed, 4, renamed.bytes().subspan(1));
    EXPECT_EQ(inner.bytes().size(), 2u);
    {
        const KeptMessage kept = inner.keep();
        EXPECT_EQ(kept.source(), 4u);
        EXPECT_EQ(kept.bytes().data(), content.data() + 1);
    }
    EXPECT_EQ(buffers.released, std::vector<std::uint64_t>{42});
    EXPECT_FALSE(whole.was_kept());
    whole.note_kept();
    EXPECT_TRUE(whole.was_kept());
}

} // namespace
} // namespace kumi::pm
