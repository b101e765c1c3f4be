#include "kumi/launch/host/pmi/pmi_frames.hpp"

#include <gtest/gtest.h>

namespace kumi::launch::host {
namespace {

std::vector<std::byte> bytes(std::string_view text) {
    const Bytes all = bytes_of(text);
    return {all.begin(), all.end()};
}

TEST(PmiFrames, are_read_as_they_were_written) {
    const auto fence = decode_fence(encode(Fence{"x0,3", bytes("content")}));
    ASSERT_TRUE(fence);
    EXPECT_EQ(fence->key, "x0,3");
    EXPECT_EQ(text_of(fence->content), "content");
    const auto fetch = decode_fetch(encode(Fetch{1, 2, 3, -4, bytes("c")}));
    ASSERT_TRUE(fetch);
    EXPECT_EQ(fetch->id, 1u);
    EXPECT_EQ(fetch->asker, 2u);
    EXPECT_EQ(fetch->target, 3u);
    EXPECT_EQ(fetch->status, -4);
    EXPECT_EQ(text_of(fetch->content), "c");
    const auto abort = decode_abort(encode(Abort{-1, "why"}));
    ASSERT_TRUE(abort);
    EXPECT_EQ(abort->code, -1);
    EXPECT_EQ(abort->text, "why");
    const auto named = with_node(258, bytes("rest"));
    std::uint32_t node = 0;
    EXPECT_TRUE(read_value(named, node));
    EXPECT_EQ(node, 258u);
    EXPECT_EQ(text_of(Bytes(named).subspan(4)), "rest");
}

TEST(PmiFrames, that_are_cut_short_are_not_read) {
    const auto fence = encode(Fence{"key", bytes("content")});
    EXPECT_FALSE(decode_fence(Bytes(fence).first(3)));
    EXPECT_FALSE(decode_fence(Bytes(fence).first(6)));
    EXPECT_TRUE(decode_fence(Bytes(fence).first(7))) << "a key without content";
    const auto fetch = encode(Fetch{1, 2, 3, 4, {}});
    EXPECT_FALSE(decode_fetch(Bytes(fetch).first(15)));
    EXPECT_TRUE(decode_fetch(fetch));
    EXPECT_FALSE(decode_abort(Bytes(encode(Abort{1, ""})).first(3)));
}

TEST(PmiFrames, a_fences_key_names_nodes) {
    using Nodes = std::vector<std::uint32_t>;
    EXPECT_EQ(nodes_of_fence("x*", 4), Nodes{});
    EXPECT_EQ(nodes_of_fence("x0", 4), Nodes{0});
    EXPECT_EQ(nodes_of_fence("10,2,3", 4), (Nodes{0, 2, 3}));
    for (const char* const wrong : {"", "x", "*", "x,", "x0,", "x0,,1", "x4", "x1,0", "x1,1", "x-1", "xa", "x*,1"})
        EXPECT_EQ(nodes_of_fence(wrong, 4), std::nullopt) << wrong;
}

} // namespace
} // namespace kumi::launch::host
