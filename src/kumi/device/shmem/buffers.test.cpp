#include "kumi/device/shmem/buffers.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace kumi::device::shmem {
namespace {

std::shared_ptr<Segment> make_segment(Node nodes) {
    auto segment = Segment::create(nodes, {.node_buffers_bytes_max = std::size_t{1} << 20});
    EXPECT_TRUE(segment);
    for (Node node = 0; node < nodes; ++node) EXPECT_TRUE((*segment)->reserve_part(node));
    return *segment;
}

TEST(ShmemBuffers, what_comes_back_can_be_had_again_in_any_order) {
    const auto segment = make_segment(2);
    BufferHeap heap(*segment, 0);
    const std::size_t all = heap.units_free();
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::uint32_t> taken;
        while (const auto unit = heap.try_take(1 + random() % 60'000)) taken.push_back(*unit);
        std::shuffle(taken.begin(), taken.end(), random);
        for (const std::uint32_t unit : taken) return_buffer(*segment, 0, unit);
        ASSERT_EQ(heap.units_free(), all);
    }
    EXPECT_TRUE(heap.try_take(segment->layout().buffer_bytes)) << "the largest message fits an empty heap";
    EXPECT_FALSE(heap.try_take(1));
}

TEST(ShmemBuffers, the_lowest_free_buffer_is_taken_first) {
    const auto segment = make_segment(1);
    BufferHeap heap(*segment, 0);
    const auto first = heap.try_take(10'000);
    const auto second = heap.try_take(10'000);
    ASSERT_TRUE(first && second);
    EXPECT_LT(*first, *second);
    return_buffer(*segment, 0, *first);
    EXPECT_EQ(heap.try_take(5'000), first);
}

TEST(ShmemBuffers, a_return_tells_whether_the_owner_waits_for_it) {
    const auto segment = make_segment(1);
    BufferHeap heap(*segment, 0);
    const auto unit = heap.try_take(segment->layout().buffer_bytes);
    ASSERT_TRUE(unit);
    EXPECT_TRUE(heap.wait_for(1));
    EXPECT_TRUE(return_buffer(*segment, 0, *unit));
    EXPECT_FALSE(heap.wait_for(1));
}

TEST(ShmemBuffers, several_receivers_return_at_once) {
    const auto segment = make_segment(4);
    BufferHeap heap(*segment, 0);
    const std::size_t all = heap.units_free();
    for (int round = 0; round < 300; ++round) {
        std::vector<std::uint32_t> taken;
        while (const auto unit = heap.try_take(4096)) taken.push_back(*unit);
        std::vector<std::thread> receivers;
        for (std::size_t part = 0; part < 3; ++part)
            receivers.emplace_back([&, part] {
                for (std::size_t i = part; i < taken.size(); i += 3) return_buffer(*segment, 0, taken[i]);
            });
        while (heap.units_free() < all) std::this_thread::yield();
        for (std::thread& receiver : receivers) receiver.join();
    }
}

} // namespace
} // namespace kumi::device::shmem
