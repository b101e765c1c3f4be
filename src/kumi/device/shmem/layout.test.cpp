#include "kumi/device/shmem/layout.hpp"

#include <gtest/gtest.h>

namespace kumi::device::shmem {
namespace {

TEST(ShmemLayout, parts_do_not_overlap_and_keep_their_alignment) {
    for (const Node nodes : {1u, 2u, 3u, 16u, 64u, 65u, 300u}) {
        const Layout layout = Layout::plan(nodes, {});
        EXPECT_GE(layout.attention_offset(), sizeof(Mailbox));
        EXPECT_GE(layout.control_offset(0), layout.attention_offset() + layout.attention_words() * 8);
        EXPECT_EQ(layout.control_offset(0) % 64, 0u);
        EXPECT_GE(layout.ring_offset(0), layout.control_offset(nodes - 1) + 64);
        EXPECT_EQ(layout.ring_offset(0) % 64, 0u);
        EXPECT_EQ(layout.ring_offset(nodes - 1) + layout.ring_lines * 64, layout.links_offset());
        EXPECT_GE(layout.buffers_offset(), layout.links_offset() + layout.units() * 4);
        EXPECT_EQ(layout.buffers_offset() % page_bytes, 0u);
        EXPECT_EQ(layout.part_offset(nodes - 1) + layout.part_bytes(), layout.memory_bytes());
        EXPECT_LE(layout.memory_bytes(), layout.window_offset(0));
        EXPECT_EQ(layout.part_offset(1) % page_bytes, 0u);
    }
}

TEST(ShmemLayout, windows_can_be_mapped_on_systems_with_pages_of_64_kibibytes) {
    for (const std::size_t exposed : {std::size_t{16} << 30, std::size_t{4096}, std::size_t{100'000}})
        for (const Node nodes : {1u, 2u, 3u, 300u}) {
            const Layout layout = Layout::plan(nodes, {.exposed_bytes_max = exposed});
            EXPECT_GE(layout.window_bytes, exposed);
            for (Node node = 0; node < nodes; ++node) EXPECT_EQ(layout.window_offset(node) % (64 << 10), 0u);
            EXPECT_EQ(layout.window_offset(nodes - 1) + layout.window_bytes, layout.segment_bytes());
        }
}

TEST(ShmemLayout, memory_per_pair_is_bounded_and_shrinks_with_the_number_of_nodes) {
    EXPECT_EQ(Layout::plan(2, {}).bytes_per_pair(), 65536u + 64);
    EXPECT_EQ(Layout::plan(64, {}).bytes_per_pair(), 16384u + 64);
    EXPECT_EQ(Layout::plan(300, {}).bytes_per_pair(), 2048u + 64);
    EXPECT_EQ(Layout::plan(5000, {}).bytes_per_pair(), 2048u + 64); // the least that a ring can be
}

TEST(ShmemLayout, three_hundred_nodes_fit_in_half_a_gigabyte) {
    EXPECT_LT(Layout::plan(300, {}).memory_bytes(), std::size_t{512} << 20);
    EXPECT_LT(Layout::plan(2, {}).memory_bytes(), std::size_t{33} << 20);
}

TEST(ShmemLayout, a_record_is_never_longer_than_its_ring_allows) {
    for (const Node nodes : {1u, 2u, 64u, 300u, 5000u}) {
        const Layout layout = Layout::plan(nodes, {});
        EXPECT_LE(layout.record_lines_max(), base::record_lines_max(layout.ring_lines));
        EXPECT_GE(layout.inline_bytes_max(), 248u);
    }
}

TEST(ShmemLayout, messages_of_8_KiB_fit_into_the_rings_of_few_nodes) {
    EXPECT_GE(Layout::plan(2, {}).inline_bytes_max(), 8192u);
}

TEST(ShmemLayout, buffers_are_shared_among_nodes_within_their_bounds) {
    constexpr std::size_t mebibyte = std::size_t{1} << 20;
    EXPECT_EQ(Layout::plan(1, {}).buffer_bytes, 16 * mebibyte);
    EXPECT_EQ(Layout::plan(16, {}).buffer_bytes, 16 * mebibyte);
    EXPECT_EQ(Layout::plan(32, {}).buffer_bytes, 8 * mebibyte);
    EXPECT_EQ(Layout::plan(1024, {}).buffer_bytes, mebibyte / 4);
    EXPECT_EQ(Layout::plan(1025, {}).buffer_bytes, mebibyte / 4) << "the least that a node has";
    for (const Node nodes : {17u, 300u, 999u}) {
        const std::size_t bytes = Layout::plan(nodes, {}).buffer_bytes;
        EXPECT_EQ(bytes % unit_bytes, 0u) << nodes;
        EXPECT_LE(bytes, 256 * mebibyte / nodes) << nodes;
        EXPECT_GT(bytes + unit_bytes, 256 * mebibyte / nodes) << nodes;
    }
}

TEST(ShmemLayout, rings_are_as_large_as_their_share_allows_and_a_power_of_two) {
    const auto ring_bytes = [](Node nodes) { return Layout::plan(nodes, {}).ring_lines * sizeof(base::RingLine); };
    EXPECT_EQ(ring_bytes(32), 65536u);
    EXPECT_EQ(ring_bytes(33), 32768u);
    EXPECT_EQ(ring_bytes(181), 2048u);
    EXPECT_EQ(ring_bytes(128), 4096u);
    EXPECT_EQ(ring_bytes(129), 2048u);
}

TEST(ShmemLayout, what_a_header_says_is_the_layout_that_was_planned) {
    for (const Node nodes : {1u, 3u, 65u}) {
        const Layout planned = Layout::plan(nodes, {});
        const Layout read = Layout::from({.magic = 0,
                                          .version = 0,
                                          .nodes = nodes,
                                          .ring_lines = planned.ring_lines,
                                          .buffer_bytes = planned.buffer_bytes,
                                          .window_bytes = planned.window_bytes,
                                          .fencing = {},
                                          .reserved = 0});
        EXPECT_EQ(read.segment_bytes(), planned.segment_bytes());
        EXPECT_EQ(read.memory_bytes(), planned.memory_bytes());
        EXPECT_EQ(read.part_offset(nodes - 1), planned.part_offset(nodes - 1));
    }
}

TEST(ShmemLayout, windows_follow_each_other_in_whole_pages_up_to_the_end) {
    const std::size_t page = base::page_bytes_max;
    const Layout layout = Layout::plan(3, {.exposed_bytes_max = page + 1});
    EXPECT_EQ(layout.window_bytes, 2 * page);
    EXPECT_GE(layout.window_offset(0), layout.memory_bytes());
    EXPECT_LT(layout.window_offset(0), layout.memory_bytes() + page);
    EXPECT_EQ(layout.window_offset(1), layout.window_offset(0) + layout.window_bytes);
    EXPECT_EQ(layout.segment_bytes(), layout.window_offset(2) + layout.window_bytes);
    EXPECT_EQ(Layout::plan(3, {.exposed_bytes_max = page}).window_bytes, page);
}

TEST(ShmemLayout, every_writer_has_a_bit_of_attention_and_departures_have_a_word) {
    for (const auto& [nodes, words] :
         {std::pair<Node, std::size_t>{1, 1}, {63, 1}, {64, 1}, {65, 2}, {128, 2}, {129, 3}}) {
        EXPECT_EQ(Layout::plan(nodes, {}).writer_words(), words);
        EXPECT_EQ(Layout::plan(nodes, {}).attention_words(), words + 1);
    }
}

} // namespace
} // namespace kumi::device::shmem
